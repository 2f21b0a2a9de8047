package pq

// pageHeader stands in front of every page of a column chunk.
type pageHeader struct {
	kind         pageKind
	uncompressed int32 // bytes, levels included
	compressed   int32
	crc          uint32 // of the page as stored
	hasCRC       bool

	numValues int32 // nulls included
	encoding  encoding

	// Version 1: how the levels are encoded.
	defEncoding, repEncoding encoding

	// Version 2: the levels stand uncompressed in front of the values.
	numNulls, numRows    int32
	defLength, repLength int32
	valuesCompressed     bool
}

type pageKind int8

const (
	dataPage       pageKind = 0
	indexPage      pageKind = 1
	dictionaryPage pageKind = 2
	dataPageV2     pageKind = 3
)

type encoding int8

const (
	encPlain             encoding = 0
	encPlainDictionary   encoding = 2
	encRLE               encoding = 3
	encBitPacked         encoding = 4
	encDeltaBinaryPacked encoding = 5
	encDeltaLengthBytes  encoding = 6
	encDeltaBytes        encoding = 7
	encRLEDictionary     encoding = 8
	encByteStreamSplit   encoding = 9
)

func (e encoding) dictionary() bool { return e == encPlainDictionary || e == encRLEDictionary }

// parsePageHeader decodes the header at the start of buf and returns its
// length. short means that buf ends inside the header.
func parsePageHeader(buf []byte) (h pageHeader, length int, short bool, err error) {
	t := &thriftReader{buf: buf}
	h = pageHeader{kind: -1, uncompressed: -1, compressed: -1, numValues: -1, numNulls: -1, numRows: -1, valuesCompressed: true}
	for id, typ := range t.fields() {
		switch id {
		case 1:
			h.kind = pageKind(t.enum(typ))
		case 2:
			h.uncompressed = t.int32(typ)
		case 3:
			h.compressed = t.int32(typ)
		case 4:
			h.crc, h.hasCRC = uint32(t.int32(typ)), true
		case 5:
			t.dataPageHeader(typ, &h)
		case 7:
			t.dictionaryPageHeader(typ, &h)
		case 8:
			t.dataPageHeaderV2(typ, &h)
		default:
			t.skip(typ)
		}
	}
	switch {
	case t.short:
		return h, 0, true, nil
	case t.failed:
		return h, 0, false, corrupt("a page header cannot be decoded")
	}
	return h, t.pos, false, h.check()
}

func (t *thriftReader) dataPageHeader(typ byte, h *pageHeader) {
	for id, typ := range t.structure(typ) {
		switch id {
		case 1:
			h.numValues = t.int32(typ)
		case 2:
			h.encoding = encoding(t.enum(typ))
		case 3:
			h.defEncoding = encoding(t.enum(typ))
		case 4:
			h.repEncoding = encoding(t.enum(typ))
		default:
			t.skip(typ)
		}
	}
}

func (t *thriftReader) dictionaryPageHeader(typ byte, h *pageHeader) {
	for id, typ := range t.structure(typ) {
		switch id {
		case 1:
			h.numValues = t.int32(typ)
		case 2:
			h.encoding = encoding(t.enum(typ))
		default:
			t.skip(typ)
		}
	}
}

func (t *thriftReader) dataPageHeaderV2(typ byte, h *pageHeader) {
	for id, typ := range t.structure(typ) {
		switch id {
		case 1:
			h.numValues = t.int32(typ)
		case 2:
			h.numNulls = t.int32(typ)
		case 3:
			h.numRows = t.int32(typ)
		case 4:
			h.encoding = encoding(t.enum(typ))
		case 5:
			h.defLength = t.int32(typ)
		case 6:
			h.repLength = t.int32(typ)
		case 7:
			h.valuesCompressed = t.bool(typ)
		default:
			t.skip(typ)
		}
	}
}

// check refuses a header whose own numbers contradict each other.
func (h *pageHeader) check() error {
	if h.uncompressed < 0 || h.compressed < 0 {
		return corrupt("a page claims %d bytes, %d compressed", h.uncompressed, h.compressed)
	}
	switch h.kind {
	case dataPage, dictionaryPage:
		if h.numValues < 0 {
			return corrupt("a page claims %d values", h.numValues)
		}
	case dataPageV2:
		levels := int64(h.defLength) + int64(h.repLength)
		if h.numValues < 0 || h.numNulls < 0 || h.numNulls > h.numValues || h.numRows < 0 || h.numRows > h.numValues ||
			h.defLength < 0 || h.repLength < 0 || levels > int64(h.uncompressed) || levels > int64(h.compressed) {
			return corrupt("a page header contradicts itself: %d values, %d nulls, %d rows, levels of %d+%d in %d bytes, %d compressed",
				h.numValues, h.numNulls, h.numRows, h.repLength, h.defLength, h.uncompressed, h.compressed)
		}
	}
	return nil
}
