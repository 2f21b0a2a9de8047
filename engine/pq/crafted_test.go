package pq

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

func readCrafted(t *testing.T, content []byte, opts Options, s selection) ([][]string, error) {
	t.Helper()
	opts.BatchRows = max(s.batchRows, 1)
	_, values, err := readAll(t, openCrafted(t, content, opts), s)
	return values, err
}

// TestRowsAcrossPages: pages of version 1 may end inside a row.
func TestRowsAcrossPages(t *testing.T) {
	schema := []schemaElement{root(1), group("l", optional, 3, 1), group("list", repeated, -1, 1), primitive("element", required, physInt32)}
	content := craft(schema, 4, craftedColumn{values: 9, pages: []craftedPage{
		dataV1(3, encPlain, levelRuns(0, 1, 1), levelRuns(2, 2, 2), int32s(0, 3)),
		dataV1(2, encPlain, levelRuns(1, 0), levelRuns(2, 0), int32s(3, 1)), // the first row ends, a null follows
		dataV1(1, encPlain, levelRuns(0), levelRuns(2), int32s(4, 1)),
		dataV1(2, encPlain, levelRuns(1, 1), levelRuns(2, 2), int32s(5, 2)),
		dataV1(1, encPlain, levelRuns(0), levelRuns(1), nil), // an empty list
	}})
	want := []string{"[0,1,2,3]", "(null)", "[4,5,6]", "[]"}
	for batchRows := 1; batchRows <= 5; batchRows++ {
		values, err := readCrafted(t, content, Options{ReadSize: 1}, selection{batchRows: batchRows})
		if err != nil || !slices.Equal(values[0], want) {
			t.Errorf("batches of %d: %v %v", batchRows, values, err)
		}
	}
	for keep := range 1 << 4 {
		var kept []string
		for i, v := range want {
			if keep>>i&1 == 1 {
				kept = append(kept, v)
			}
		}
		values, err := readCrafted(t, content, Options{}, selection{batchRows: 3, keep: func(p int64) bool { return keep>>p&1 == 1 }})
		if err != nil || !slices.Equal(values[0], kept) {
			t.Errorf("keeping %b: %v %v", keep, values, err)
		}
	}
}

// TestDecimalBytes: decimals of variable length, plain and by dictionary.
func TestDecimalBytes(t *testing.T) {
	e := primitive("d", required, physByteArray)
	e.converted, e.precision, e.scale = 5, 38, 2
	var plain []byte
	for _, v := range [][]byte{{1}, {0xff}, {0, 0x80}, {0x80, 0}, append(make([]byte, 20), 7), {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe}} {
		plain = append(binary.LittleEndian.AppendUint32(plain, uint32(len(v))), v...)
	}
	want := []string{"0.01", "-0.01", "1.28", "-327.68", "0.07", "-0.02"}
	for name, pages := range map[string][]craftedPage{
		"plain":      {dataV1(6, encPlain, nil, nil, plain)},
		"dictionary": {dictPage(6, plain), dataV1(6, encRLEDictionary, nil, nil, []byte{3, 3, 0o210, 0o306, 0o372})},
	} {
		values, err := readCrafted(t, craft([]schemaElement{root(1), e}, 6, craftedColumn{values: 6, pages: pages}), Options{}, selection{batchRows: 4})
		if err != nil || !slices.Equal(values[0], want) {
			t.Errorf("%s: %v %v", name, values, err)
		}
	}
	for name, value := range map[string][]byte{"empty": {}, "too long": append([]byte{1}, make([]byte, 16)...)} {
		bad := append(binary.LittleEndian.AppendUint32(nil, uint32(len(value))), value...)
		_, err := readCrafted(t, craft([]schemaElement{root(1), e}, 1, craftedColumn{values: 1, pages: []craftedPage{dataV1(1, encPlain, nil, nil, bad)}}), Options{}, selection{})
		if errs.CodeOf(err) != errs.Corrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHadoopLZ4: the codec LZ4 in one frame, in several, and without any.
func TestHadoopLZ4(t *testing.T) {
	raw := int32s(100, 64)
	pack := func(part []byte) []byte {
		out := make([]byte, lz4.CompressBlockBound(len(part)))
		n, err := lz4.CompressBlock(part, out, nil)
		if err != nil || n == 0 { // not compressible: literals only
			n = copy(out, append([]byte{byte(min(len(part), 15) << 4)}, append(lz4Length(len(part)), part...)...))
		}
		return out[:n]
	}
	frame := func(part []byte) []byte {
		stored := pack(part)
		out := binary.BigEndian.AppendUint32(nil, uint32(len(part)))
		return append(binary.BigEndian.AppendUint32(out, uint32(len(stored))), stored...)
	}
	for name, body := range map[string][]byte{
		"one frame":  frame(raw),
		"two frames": append(frame(raw[:100]), frame(raw[100:])...),
		"no frame":   pack(raw),
	} {
		page := dataV1(64, encPlain, nil, nil, raw)
		page.body, page.header.compressed = body, int32(len(body))
		values, err := readCrafted(t, craft([]schemaElement{root(1), primitive("i", required, physInt32)}, 64, craftedColumn{values: 64, codec: codecLZ4, pages: []craftedPage{page}}), Options{}, selection{batchRows: 64})
		if err != nil || values[0][63] != "163" {
			t.Errorf("%s: %v %v", name, values, err)
		}
	}
}

func lz4Length(n int) []byte {
	if n < 15 {
		return nil
	}
	var out []byte
	for n -= 15; n >= 255; n -= 255 {
		out = append(out, 255)
	}
	return append(out, byte(n))
}

// TestDictionaryWithoutOffset: some writers do not say where the dictionary
// is; it comes first all the same.
func TestDictionaryWithoutOffset(t *testing.T) {
	content := craft([]schemaElement{root(1), primitive("i", required, physInt32)}, 4, craftedColumn{
		values: 4,
		pages:  []craftedPage{dictPage(2, int32s(7, 2)), dataV1(4, encPlainDictionary, nil, nil, []byte{1, 3, 0b0110})},
		edit:   func(c *columnChunk) { c.dataPageOffset, c.dictPageOffset = c.dictPageOffset, 0 },
	})
	values, err := readCrafted(t, content, Options{}, selection{batchRows: 9})
	if err != nil || !slices.Equal(values[0], []string{"7", "8", "8", "7"}) {
		t.Error(values, err)
	}
}

// TestDictionaryWithDuplicates: a dictionary may have a value twice, also when
// strings of later pages are added to it.
func TestDictionaryWithDuplicates(t *testing.T) {
	e := primitive("s", required, physByteArray)
	e.converted, e.hasFieldID, e.fieldID = 0, true, 7
	plain := func(values ...string) (out []byte) {
		for _, v := range values {
			out = append(binary.LittleEndian.AppendUint32(out, uint32(len(v))), v...)
		}
		return out
	}
	content := craft([]schemaElement{root(1), e}, 6, craftedColumn{values: 6, pages: []craftedPage{
		dictPage(3, plain("a", "a", "b")), dataV1(3, encRLEDictionary, nil, nil, []byte{2, 3, 0b100100}), dataV1(3, encPlain, nil, nil, plain("b", "c", "a")),
	}})
	for _, encoded := range []bool{false, true} {
		f := openCrafted(t, content, Options{BatchRows: 10, DictionaryFields: map[int]bool{7: encoded}})
		r, err := f.NewReader(context.Background(), allColumns(f), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(context.Background()); err != nil {
			t.Fatal(err)
		}
		arrays, err := r.Read(context.Background(), []int{0}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := render(arrays[0]), []string{"a", "a", "b", "b", "c", "a"}; !slices.Equal(got, want) {
			t.Errorf("encoded %v: %v, want %v", encoded, got, want)
		}
		if _, ok := arrays[0].(*array.Dictionary); ok != encoded {
			t.Errorf("encoded %v: a %s", encoded, arrays[0].DataType())
		}
		arrays[0].Release()
		r.Close()
	}
}

// TestLyingOffsetIndex: an index that is wrong in any way must not change what
// is read.
func TestLyingOffsetIndex(t *testing.T) {
	var pages []craftedPage
	for i := range 10 { // larger than what is read of a page to see its header
		pages = append(pages, dataV1(200, encPlain, nil, nil, int32s(int32(200*i), 200)))
	}
	lies := map[string]func(p []pageLocation) []pageLocation{
		"right":          func(p []pageLocation) []pageLocation { return p },
		"rows shifted":   func(p []pageLocation) []pageLocation { p[5].firstRow++; return p },
		"page left out":  func(p []pageLocation) []pageLocation { return slices.Delete(p, 4, 5) },
		"rows backwards": func(p []pageLocation) []pageLocation { p[5].firstRow = 30; return p },
		"offsets swapped": func(p []pageLocation) []pageLocation {
			p[5].offset, p[6].offset = p[6].offset, p[5].offset
			return p
		},
		"beyond the chunk": func(p []pageLocation) []pageLocation { p[9].offset = 1 << 40; return p },
		"negative":         func(p []pageLocation) []pageLocation { p[0].offset = -5; return p },
		"empty":            func([]pageLocation) []pageLocation { return nil },
		"too many rows":    func(p []pageLocation) []pageLocation { p[9].firstRow = 1 << 50; return p },
	}
	for name, lie := range lies {
		content := craft([]schemaElement{root(1), primitive("i", required, physInt32)}, 2000, craftedColumn{values: 2000, pages: pages, offsetIndex: lie})
		for first := int64(0); first < 2000; first += 61 {
			ranges := []batch.Range{{Start: first, End: first + 1}, {Start: max(first+1, min(first+737, 1999)), End: 2000}}
			values, err := readCrafted(t, content, Options{ReadSize: 16}, selection{batchRows: 4000, ranges: ranges})
			if err != nil || values[0][0] != fmt.Sprint(first) || values[0][len(values[0])-1] != "1999" {
				t.Errorf("%s, row %d: %v %v", name, first, values, err)
			}
		}
	}
}

// TestLyingOffsetIndexOfList: of a list, an index that is wrong may be an
// error, but not other values.
func TestLyingOffsetIndexOfList(t *testing.T) {
	schema := []schemaElement{root(1), group("l", required, 3, 1), group("list", repeated, -1, 1), primitive("element", required, physInt32)}
	var pages []craftedPage
	for i := range 10 {
		pages = append(pages, dataV1(200, encPlain, levelRuns(make([]byte, 200)...), levelRuns(bytes.Repeat([]byte{1}, 200)...), int32s(int32(200*i), 200)))
	}
	for name, c := range map[string]struct {
		lie   func(p []pageLocation) []pageLocation
		right bool
	}{
		"right":         {func(p []pageLocation) []pageLocation { return p }, true},
		"rows shifted":  {func(p []pageLocation) []pageLocation { p[5].firstRow++; return p }, false},
		"page left out": {func(p []pageLocation) []pageLocation { return slices.Delete(p, 4, 5) }, false},
		"backwards":     {func(p []pageLocation) []pageLocation { p[5].firstRow = 30; return p }, true},
	} {
		content := craft(schema, 2000, craftedColumn{values: 2000, pages: pages, offsetIndex: c.lie})
		for first := int64(0); first < 2000; first += 61 {
			values, err := readCrafted(t, content, Options{ReadSize: 16}, selection{ranges: []batch.Range{{Start: first, End: first + 1}}})
			switch {
			case err != nil && (c.right || errs.CodeOf(err) != errs.Corrupt):
				t.Errorf("%s, row %d: %v", name, first, err)
			case err == nil && values[0][0] != fmt.Sprintf("[%d]", first):
				t.Errorf("%s, row %d: %v", name, first, values)
			}
		}
	}
}

// TestBombs: pages that claim or expand to far more than the pool allows.
func TestBombs(t *testing.T) {
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	zeros := encoder.EncodeAll(make([]byte, 512<<20), nil)
	schema := []schemaElement{root(1), primitive("i", required, physInt32)}
	bomb := func(claimed int32, n int, codec int32, body []byte, edit func(*columnChunk)) []byte {
		page := craftedPage{pageHeader{kind: dataPage, uncompressed: claimed, compressed: int32(len(body)), numValues: int32(n), defEncoding: encRLE, repEncoding: encRLE}, body}
		return craft(schema, int64(n), craftedColumn{values: int64(n), codec: codec, pages: []craftedPage{page}, edit: edit})
	}
	for name, c := range map[string]struct {
		content []byte
		code    errs.Code
	}{
		"honest bomb":         {bomb(512<<20, 128<<20, codecZstd, zeros, nil), errs.MemoryLimit},
		"claims less":         {bomb(1000, 250, codecZstd, zeros, nil), errs.Corrupt},
		"claims more":         {bomb(2000, 500, codecZstd, encoder.EncodeAll(make([]byte, 100), nil), nil), errs.Corrupt},
		"more than the chunk": {bomb(1<<30, 1<<28, codecZstd, zeros, func(c *columnChunk) { c.uncompressedSize = 1000 }), errs.Corrupt},
		"snappy claims more":  {bomb(400, 100, codecSnappy, []byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0}, nil), errs.Corrupt},
		"brotli garbage":      {bomb(400, 100, 4, []byte{1, 2, 3}, nil), errs.Corrupt},
		"gzip garbage":        {bomb(400, 100, 2, []byte{1, 2, 3}, nil), errs.Corrupt},
		"unknown codec":       {bomb(400, 100, 77, []byte{1, 2, 3}, nil), errs.Unsupported},
		"LZO":                 {bomb(400, 100, 3, []byte{1, 2, 3}, nil), errs.Unsupported},
	} {
		pool := mem.NewPool("test", 16<<20)
		_, err := readCrafted(t, c.content, Options{Pool: pool}, selection{batchRows: 1000})
		if errs.CodeOf(err) != c.code {
			t.Errorf("%s: %v %v", name, errs.CodeOf(err), err)
		}
		if pool.Peak() > 16<<20 {
			t.Errorf("%s: %d bytes charged", name, pool.Peak())
		}
	}
}

// TestOddPages: what a file may say that is unusual or wrong.
func TestOddPages(t *testing.T) {
	i := []schemaElement{root(1), primitive("i", required, physInt32)}
	o := []schemaElement{root(1), primitive("i", optional, physInt32)}
	page := dataV1(4, encPlain, nil, nil, int32s(0, 4))
	withCRC := page
	withCRC.header.hasCRC = true
	for name, c := range map[string]struct {
		content []byte
		want    string // values, or a part of the error
	}{
		"an empty page":           {craft(i, 4, craftedColumn{values: 4, pages: []craftedPage{dataV1(0, encPlain, nil, nil, nil), page}}), "0 1 2 3"},
		"an index page between":   {craft(i, 4, craftedColumn{values: 4, pages: []craftedPage{{pageHeader{kind: indexPage, uncompressed: 3, compressed: 3}, []byte("abc")}, page}}), "0 1 2 3"},
		"nulls without values":    {craft(o, 3, craftedColumn{values: 3, pages: []craftedPage{dataV1(3, encRLEDictionary, nil, levelRuns(0, 0, 0), nil)}}), "dictionary"},
		"nulls with a dictionary": {craft(o, 3, craftedColumn{values: 3, pages: []craftedPage{dictPage(0, nil), dataV1(3, encRLEDictionary, nil, levelRuns(0, 0, 0), nil)}}), "(null) (null) (null)"},
		"an index beyond":         {craft(o, 1, craftedColumn{values: 1, pages: []craftedPage{dictPage(1, int32s(1, 1)), dataV1(1, encRLEDictionary, nil, levelRuns(1), []byte{1, 2, 1})}}), "beyond the 1 values"},
		"two dictionaries":        {craft(i, 4, craftedColumn{values: 4, pages: []craftedPage{dictPage(1, int32s(1, 1)), dictPage(1, int32s(1, 1)), page}, edit: func(c *columnChunk) { c.dataPageOffset, c.dictPageOffset = 4, 4 }}), "two dictionaries"},
		"too few values":          {craft(i, 5, craftedColumn{values: 5, pages: []craftedPage{dataV1(5, encPlain, nil, nil, int32s(0, 4))}}), "ends before its last value"},
		"too few pages":           {craft(i, 9, craftedColumn{values: 9, pages: []craftedPage{page, page}}), "end before its last row"},
		"too many rows":           {craft(i, 3, craftedColumn{values: 3, pages: []craftedPage{page}}), "beyond its 3 rows"},
		"an unknown encoding":     {craft(i, 4, craftedColumn{values: 4, pages: []craftedPage{dataV1(4, 99, nil, nil, nil)}}), "encoding 99"},
		"packed levels":           {craft(o, 1, craftedColumn{values: 1, pages: []craftedPage{{pageHeader{kind: dataPage, uncompressed: 5, compressed: 5, numValues: 1, defEncoding: encBitPacked}, []byte("abcde")}}}), "levels in the encoding 4"},
		"few levels":              {craft(o, 2, craftedColumn{values: 2, pages: []craftedPage{dataV1(2, encPlain, nil, levelRuns(1), int32s(0, 2))}}), "fewer levels"},
		"another type":            {craft(i, 4, craftedColumn{values: 4, pages: []craftedPage{page}, edit: func(c *columnChunk) { c.physical = physInt64 }}), "physical type 2"},
		"outside the file":        {craft(i, 4, craftedColumn{values: 4, pages: []craftedPage{page}, edit: func(c *columnChunk) { c.compressedSize = 1 << 60 }}), "claims 1152921504606846976 bytes"},
	} {
		values, err := readCrafted(t, c.content, Options{}, selection{batchRows: 10})
		got := ""
		if err != nil {
			got = err.Error()
			if code := errs.CodeOf(err); code != errs.Corrupt && code != errs.Unsupported {
				t.Errorf("%s: %v", name, code)
			}
		} else {
			got = strings.Join(values[0], " ")
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestSchemas: the shapes in which writers spelled lists and maps.
func TestSchemas(t *testing.T) {
	element := primitive("element", optional, physInt32)
	for _, c := range []struct {
		schema []schemaElement
		want   string
	}{
		{[]schemaElement{root(1), group("l", optional, 3, 1), group("list", repeated, -1, 1), element}, "l: type=list<element: int32, nullable>, nullable"},
		{[]schemaElement{root(1), group("l", required, 3, 1), primitive("array", repeated, physInt32)}, "l: type=list<array: int32>"},
		{[]schemaElement{root(1), group("l", optional, 3, 1), group("array", repeated, -1, 1), element}, "l: type=list<array: struct<element: int32 nullable>>, nullable"},
		{[]schemaElement{root(1), group("l", optional, 3, 1), group("l_tuple", repeated, -1, 1), element}, "l: type=list<l_tuple: struct<element: int32 nullable>>, nullable"},
		{[]schemaElement{root(1), group("l", optional, 3, 1), group("bag", repeated, -1, 2), element, primitive("b", required, physInt64)}, "l: type=list<bag: struct<element: int32 nullable, b: int64>>, nullable"},
		{[]schemaElement{root(1), primitive("r", repeated, physInt32)}, "r: type=list<r: int32>"},
		{[]schemaElement{root(1), group("r", repeated, -1, 1), element}, "r: type=list<r: struct<element: int32 nullable>>"},
		{[]schemaElement{root(1), group("m", optional, 1, 1), group("key_value", repeated, -1, 2), primitive("key", required, physInt32), primitive("value", optional, physInt64)}, "m: type=map<int32, int64, items_nullable>, nullable"},
		{[]schemaElement{root(1), group("m", optional, 2, 1), group("map", repeated, -1, 2), primitive("k", optional, physInt32), primitive("v", required, physInt64)}, "m: type=map<int32, int64, items_non_nullable>, nullable"},
		{[]schemaElement{root(1), group("m", optional, 1, 1), group("key_value", repeated, -1, 1), primitive("key", required, physInt32)}, "m: type=list<key: int32>, nullable"},
		{[]schemaElement{root(1), group("ll", optional, 3, 1), group("array", repeated, 3, 1), primitive("array", repeated, physInt32)}, "ll: type=list<array: list<array: int32>>, nullable"},
	} {
		tree, err := buildSchema(c.schema)
		if err != nil {
			t.Errorf("%s: %v", c.want, err)
			continue
		}
		if got := strings.ReplaceAll(strings.ReplaceAll(tree.arrowSchema().Field(0).String(), "\n", " "), "  ", " "); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
	deep := []schemaElement{root(1)}
	for range 100_000 {
		deep = append(deep, group("g", optional, -1, 1))
	}
	for name, schema := range map[string][]schemaElement{
		"nothing":             {},
		"too deep":            append(deep, element),
		"ends in a group":     {root(2), element},
		"more than the root":  {root(1), element, element},
		"endless":             {root(1 << 30), element},
		"list of two":         {root(1), group("l", optional, 3, 2), element, element},
		"map of three":        {root(1), group("m", optional, 1, 1), group("kv", repeated, -1, 3), element, element, element},
		"no such type":        {root(1), primitive("x", required, 50)},
		"no such repetition":  {root(1), primitive("x", 9, physInt32)},
		"fixed of no length":  {root(1), primitive("x", required, physFixedLenArray)},
		"primitive with kids": {root(1), {physical: physInt32, name: "x", numChildren: 3, converted: -1}},
	} {
		if _, err := buildSchema(schema); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestUnsupportedColumn: a column that cannot be read is an error only where
// it is selected.
func TestUnsupportedColumn(t *testing.T) {
	wide := primitive("wide", required, physFixedLenArray)
	wide.length, wide.converted, wide.precision = 30, 5, 60
	content := craft([]schemaElement{root(2), primitive("i", required, physInt32), wide}, 1,
		craftedColumn{values: 1, pages: []craftedPage{dataV1(1, encPlain, nil, nil, int32s(5, 1))}},
		craftedColumn{values: 1, pages: []craftedPage{dataV1(1, encPlain, nil, nil, make([]byte, 30))}})
	f := openCrafted(t, content, Options{})
	if _, err := f.NewReader(context.Background(), allColumns(f), nil); errs.CodeOf(err) != errs.Unsupported || !strings.Contains(err.Error(), "wide") {
		t.Error(err)
	}
	r, err := f.NewReader(context.Background(), allColumns(f)[:1], nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
}
