package pq

// The structures of a footer, as far as reading needs them. Byte slices alias
// the footer.

type fileMetadata struct {
	schema    []schemaElement // depth first, the root first
	numRows   int64
	rowGroups []rowGroup
	keyValues []keyValue
	createdBy string
	// typeOrdered tells for each leaf whether min_value and max_value follow
	// the order that its type defines. Empty: the writer did not say.
	typeOrdered []bool
	encrypted   bool
}

type keyValue struct{ key, value string }

type schemaElement struct {
	physical    physicalType // noPhysical: a group
	length      int32        // of FIXED_LEN_BYTE_ARRAY
	repetition  repetition
	name        string
	numChildren int32
	fieldID     int32
	hasFieldID  bool
	logical     logicalType
	hasLogical  bool
	converted   int32 // the older annotation; -1: none
	scale       int32 // of a converted decimal
	precision   int32
}

type rowGroup struct {
	numRows int64
	columns []columnChunk
	encoded []byte // what all of this was decoded from
}

type columnChunk struct {
	physical          physicalType
	codec             int32
	numValues         int64
	compressedSize    int64
	uncompressedSize  int64
	dataPageOffset    int64
	dictPageOffset    int64 // zero: none
	stats             statistics
	unencodedBytes    int64 // of BYTE_ARRAY values; -1: unknown
	bloomOffset       int64 // zero: none
	bloomLength       int32 // zero: unknown
	offsetIndex       section
	columnIndex       section
	encrypted         bool
	elsewhere         bool // the data is in another file
	hasColumnMetadata bool
}

// section is a part of the file; no length: absent.
type section struct {
	offset int64
	length int32
}

// statistics of a column chunk or page, as the writer encoded them.
type statistics struct {
	min, max           []byte // nil: unknown
	oldMin, oldMax     []byte // in signed order whatever the type; nil: unknown
	minExact, maxExact bool   // not known to be truncated
	nullCount          int64  // -1: unknown
}

type physicalType int8

const (
	noPhysical        physicalType = -1
	physBoolean       physicalType = 0
	physInt32         physicalType = 1
	physInt64         physicalType = 2
	physInt96         physicalType = 3
	physFloat         physicalType = 4
	physDouble        physicalType = 5
	physByteArray     physicalType = 6
	physFixedLenArray physicalType = 7
)

// width is the size of a PLAIN value in bytes; zero for those of no fixed
// number of bytes.
func (p physicalType) width(length int32) int {
	switch p {
	case physInt32, physFloat:
		return 4
	case physInt64, physDouble:
		return 8
	case physInt96:
		return 12
	case physFixedLenArray:
		return int(length)
	}
	return 0
}

type repetition int8

const (
	required repetition = 0
	optional repetition = 1
	repeated repetition = 2
)

type logicalKind int8

// Kinds of logical types: the numbers of the LogicalType union, and one that
// exists as a converted type only.
const (
	logicalNone      logicalKind = 0
	logicalString    logicalKind = 1
	logicalMap       logicalKind = 2
	logicalList      logicalKind = 3
	logicalEnum      logicalKind = 4
	logicalDecimal   logicalKind = 5
	logicalDate      logicalKind = 6
	logicalTime      logicalKind = 7
	logicalTimestamp logicalKind = 8
	logicalInteger   logicalKind = 10
	logicalUnknown   logicalKind = 11
	logicalJSON      logicalKind = 12
	logicalBSON      logicalKind = 13
	logicalUUID      logicalKind = 14
	logicalFloat16   logicalKind = 15
	logicalInterval  logicalKind = 100
)

type timeUnit int8

const (
	millis timeUnit = 1
	micros timeUnit = 2
	nanos  timeUnit = 3
)

type logicalType struct {
	kind             logicalKind
	scale, precision int32
	utc              bool // of a time or timestamp
	unit             timeUnit
	bitWidth         int8 // of an integer
	signed           bool
}

// convertedTypes gives the older annotations as logical types, by number.
var convertedTypes = []logicalType{
	0:  {kind: logicalString},
	1:  {kind: logicalMap},
	2:  {kind: logicalMap}, // MAP_KEY_VALUE, which some writers put on the outer group
	3:  {kind: logicalList},
	4:  {kind: logicalEnum},
	5:  {kind: logicalDecimal},
	6:  {kind: logicalDate},
	7:  {kind: logicalTime, unit: millis, utc: true},
	8:  {kind: logicalTime, unit: micros, utc: true},
	9:  {kind: logicalTimestamp, unit: millis, utc: true},
	10: {kind: logicalTimestamp, unit: micros, utc: true},
	11: {kind: logicalInteger, bitWidth: 8},
	12: {kind: logicalInteger, bitWidth: 16},
	13: {kind: logicalInteger, bitWidth: 32},
	14: {kind: logicalInteger, bitWidth: 64},
	15: {kind: logicalInteger, bitWidth: 8, signed: true},
	16: {kind: logicalInteger, bitWidth: 16, signed: true},
	17: {kind: logicalInteger, bitWidth: 32, signed: true},
	18: {kind: logicalInteger, bitWidth: 64, signed: true},
	19: {kind: logicalJSON},
	20: {kind: logicalBSON},
	21: {kind: logicalInterval},
}

// annotation is what the element's logical or converted type says.
func (e *schemaElement) annotation() logicalType {
	if e.hasLogical {
		return e.logical
	}
	if e.converted < 0 || int(e.converted) >= len(convertedTypes) {
		return logicalType{}
	}
	l := convertedTypes[e.converted]
	l.scale, l.precision = e.scale, e.precision
	return l
}

func parseFileMetadata(footer []byte) (*fileMetadata, error) {
	t := &thriftReader{buf: footer}
	m := &fileMetadata{numRows: -1}
	for id, typ := range t.fields() {
		switch id {
		case 2:
			for i, n := range t.elements(typ, thriftStruct) {
				if i == 0 {
					m.schema = make([]schemaElement, 0, n)
				}
				m.schema = append(m.schema, t.schemaElement())
			}
		case 3:
			m.numRows = t.int64(typ)
		case 4:
			for range t.elements(typ, thriftStruct) {
				m.rowGroups = append(m.rowGroups, t.rowGroup())
			}
		case 5:
			for range t.elements(typ, thriftStruct) {
				m.keyValues = append(m.keyValues, t.keyValue())
			}
		case 6:
			m.createdBy = string(t.bytes(typ))
		case 7:
			for range t.elements(typ, thriftStruct) {
				m.typeOrdered = append(m.typeOrdered, t.columnOrder())
			}
		case 8:
			m.encrypted = true
			t.skip(typ)
		default:
			t.skip(typ)
		}
	}
	if t.failed {
		return nil, corrupt("the footer cannot be decoded")
	}
	return m, nil
}

func (t *thriftReader) schemaElement() schemaElement {
	e := schemaElement{physical: noPhysical, converted: -1}
	for id, typ := range t.fields() {
		switch id {
		case 1:
			e.physical = physicalType(t.enum(typ))
		case 2:
			e.length = t.int32(typ)
		case 3:
			e.repetition = repetition(t.enum(typ))
		case 4:
			e.name = string(t.bytes(typ))
		case 5:
			e.numChildren = t.int32(typ)
		case 6:
			e.converted = t.int32(typ)
		case 7:
			e.scale = t.int32(typ)
		case 8:
			e.precision = t.int32(typ)
		case 9:
			e.fieldID, e.hasFieldID = t.int32(typ), true
		case 10:
			e.logical, e.hasLogical = t.logicalType(typ), true
		default:
			t.skip(typ)
		}
	}
	return e
}

// enum reads a small number; one that no enumeration of Parquet has fails.
func (t *thriftReader) enum(typ byte) int8 {
	v := t.int32(typ)
	if v < 0 || v > 100 {
		t.fail()
		return 0
	}
	return int8(v)
}

func (t *thriftReader) logicalType(typ byte) logicalType {
	var l logicalType
	for kind, typ := range t.structure(typ) {
		l.kind = logicalKind(kind)
		for id, typ := range t.structure(typ) {
			switch {
			case l.kind == logicalDecimal && id == 1:
				l.scale = t.int32(typ)
			case l.kind == logicalDecimal && id == 2:
				l.precision = t.int32(typ)
			case (l.kind == logicalTime || l.kind == logicalTimestamp) && id == 1:
				l.utc = t.bool(typ)
			case (l.kind == logicalTime || l.kind == logicalTimestamp) && id == 2:
				for unit, typ := range t.structure(typ) {
					l.unit = timeUnit(unit)
					t.skip(typ)
				}
			case l.kind == logicalInteger && id == 1:
				l.bitWidth = int8(t.int64(typ))
			case l.kind == logicalInteger && id == 2:
				l.signed = t.bool(typ)
			default:
				t.skip(typ)
			}
		}
	}
	return l
}

func (t *thriftReader) rowGroup() rowGroup {
	g := rowGroup{numRows: -1}
	start := t.pos
	for id, typ := range t.fields() {
		switch id {
		case 1:
			for i, n := range t.elements(typ, thriftStruct) {
				if i == 0 {
					// A column chunk takes more than a dozen bytes on disk.
					g.columns = make([]columnChunk, 0, min(n, len(t.buf)/12+1))
				}
				g.columns = append(g.columns, t.columnChunk())
			}
		case 3:
			g.numRows = t.int64(typ)
		default:
			t.skip(typ)
		}
	}
	g.encoded = t.buf[start:t.pos]
	return g
}

func (t *thriftReader) columnChunk() columnChunk {
	c := columnChunk{physical: noPhysical, unencodedBytes: -1, stats: statistics{nullCount: -1}}
	for id, typ := range t.fields() {
		switch id {
		case 1:
			c.elsewhere = len(t.bytes(typ)) > 0
		case 3:
			c.hasColumnMetadata = true
			t.columnMetadata(typ, &c)
		case 4:
			c.offsetIndex.offset = t.int64(typ)
		case 5:
			c.offsetIndex.length = t.int32(typ)
		case 6:
			c.columnIndex.offset = t.int64(typ)
		case 7:
			c.columnIndex.length = t.int32(typ)
		case 8:
			c.encrypted = true
			t.skip(typ)
		default:
			t.skip(typ)
		}
	}
	return c
}

func (t *thriftReader) columnMetadata(typ byte, c *columnChunk) {
	for id, typ := range t.structure(typ) {
		switch id {
		case 1:
			c.physical = physicalType(t.enum(typ))
		case 4:
			c.codec = t.int32(typ)
		case 5:
			c.numValues = t.int64(typ)
		case 6:
			c.uncompressedSize = t.int64(typ)
		case 7:
			c.compressedSize = t.int64(typ)
		case 9:
			c.dataPageOffset = t.int64(typ)
		case 11:
			c.dictPageOffset = t.int64(typ)
		case 12:
			c.stats = t.statistics(typ)
		case 14:
			c.bloomOffset = t.int64(typ)
		case 15:
			c.bloomLength = t.int32(typ)
		case 16:
			for id, typ := range t.structure(typ) {
				if id == 1 {
					c.unencodedBytes = t.int64(typ)
				} else {
					t.skip(typ)
				}
			}
		default:
			t.skip(typ)
		}
	}
}

func (t *thriftReader) statistics(typ byte) statistics {
	s := statistics{nullCount: -1, minExact: true, maxExact: true}
	for id, typ := range t.structure(typ) {
		switch id {
		case 1:
			s.oldMax = t.bytes(typ)
		case 2:
			s.oldMin = t.bytes(typ)
		case 3:
			s.nullCount = t.int64(typ)
		case 5:
			s.max = t.bytes(typ)
		case 6:
			s.min = t.bytes(typ)
		case 7:
			s.maxExact = t.bool(typ)
		case 8:
			s.minExact = t.bool(typ)
		default:
			t.skip(typ)
		}
	}
	return s
}

func (t *thriftReader) keyValue() keyValue {
	var kv keyValue
	for id, typ := range t.fields() {
		switch id {
		case 1:
			kv.key = string(t.bytes(typ))
		case 2:
			kv.value = string(t.bytes(typ))
		default:
			t.skip(typ)
		}
	}
	return kv
}

// columnOrder reports whether the order is the one that the type defines.
func (t *thriftReader) columnOrder() bool {
	typeDefined := false
	for id, typ := range t.fields() {
		typeDefined = typeDefined || id == 1
		t.skip(typ)
	}
	return typeDefined
}
