package plan

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/meta"
)

// wireTask is a task as JSON, so that another process can read what this one
// planned. The filter is not in it: it goes with the request that executes the
// task, and the residual follows from it and the partition.
type wireTask struct {
	Version int         `json:"version"`
	Data    *wireFile   `json:"data"`
	Deletes []*wireFile `json:"deletes,omitempty"`
}

type wireFile struct {
	Content            string            `json:"content"`
	Path               string            `json:"path"`
	Format             string            `json:"format"`
	RecordCount        *int64            `json:"record_count,omitempty"`
	Size               *int64            `json:"file_size_in_bytes"`
	SpecID             int               `json:"spec_id"`
	Partition          []json.RawMessage `json:"partition"`
	SnapshotID         int64             `json:"snapshot_id"`
	DataSequence       *int64            `json:"data_sequence_number"`
	FileSequence       *int64            `json:"file_sequence_number,omitempty"`
	FirstRowID         *int64            `json:"first_row_id,omitempty"`
	EqualityIDs        []int             `json:"equality_ids,omitzero"`
	ReferencedDataFile *string           `json:"referenced_data_file,omitempty"`
	ContentOffset      *int64            `json:"content_offset,omitempty"`
	ContentSize        *int64            `json:"content_size_in_bytes,omitempty"`
	SortOrderID        *int              `json:"sort_order_id,omitempty"`
	SplitOffsets       []int64           `json:"split_offsets,omitzero"`
	Metrics            *wireMetrics      `json:"metrics,omitempty"`
}

// wireMetrics are counts, and bounds in hexadecimal digits, by field id.
type wireMetrics struct {
	ColumnSizes map[int]int64  `json:"column_sizes,omitzero"`
	ValueCounts map[int]int64  `json:"value_counts,omitzero"`
	NullCounts  map[int]int64  `json:"null_value_counts,omitzero"`
	NaNCounts   map[int]int64  `json:"nan_value_counts,omitzero"`
	LowerBounds map[int]string `json:"lower_bounds,omitzero"`
	UpperBounds map[int]string `json:"upper_bounds,omitzero"`
}

const wireVersion = 1

var wireContents = map[Content]string{Data: "data", PositionDeletes: "position-deletes", EqualityDeletes: "equality-deletes"}

// Encode is the wire form of a task.
func (t *Task) Encode() ([]byte, error) {
	wire := wireTask{Version: wireVersion, Data: encodeFile(t.Data)}
	for _, f := range t.Deletes {
		wire.Deletes = append(wire.Deletes, encodeFile(f))
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(wire); err != nil {
		return nil, errs.WrapAs(errs.Internal, err, "encode a task", t.Data.Path)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

func encodeFile(f *File) *wireFile {
	wire := &wireFile{
		Content: wireContents[f.Content], Path: f.Path, Format: f.Format, Size: &f.Size,
		SpecID: f.SpecID, Partition: make([]json.RawMessage, len(f.Partition)),
		SnapshotID: f.SnapshotID, DataSequence: &f.DataSequence, FirstRowID: f.FirstRowID,
		EqualityIDs: f.EqualityIDs, ReferencedDataFile: f.ReferencedDataFile,
		ContentOffset: f.ContentOffset, ContentSize: f.ContentSize,
		SortOrderID: f.SortOrderID, SplitOffsets: f.SplitOffsets,
	}
	if f.RecordCount >= 0 {
		wire.RecordCount = &f.RecordCount
	}
	if f.FileSequence >= 0 {
		wire.FileSequence = &f.FileSequence
	}
	for i, lit := range f.Partition {
		wire.Partition[i] = EncodeLiteral(lit)
	}
	if m := f.Metrics; m != nil {
		wire.Metrics = &wireMetrics{
			ColumnSizes: m.ColumnSizes, ValueCounts: m.ValueCounts, NullCounts: m.NullCounts, NaNCounts: m.NaNCounts,
			LowerBounds: encodeBounds(m.LowerBounds), UpperBounds: encodeBounds(m.UpperBounds),
		}
	}
	return wire
}

func encodeBounds(bounds map[int][]byte) map[int]string {
	if bounds == nil {
		return nil
	}
	out := make(map[int]string, len(bounds))
	for id, b := range bounds {
		out[id] = hex.EncodeToString(b)
	}
	return out
}

// EncodeLiteral is a partition value as JSON: a value of a filter has the same
// form.
func EncodeLiteral(lit iceberg.Literal) json.RawMessage {
	var value any
	switch v := lit.(type) {
	case nil:
		return json.RawMessage("null")
	case iceberg.Float32Literal:
		value = encodeFloat(float64(v), 32)
	case iceberg.Float64Literal:
		value = encodeFloat(float64(v), 64)
	case iceberg.DecimalLiteral:
		value = v.Val.ToString(int32(v.Scale))
	case iceberg.UUIDLiteral:
		value = uuid.UUID(v).String()
	case iceberg.BinaryLiteral:
		value = hex.EncodeToString(v)
	case iceberg.FixedLiteral:
		value = hex.EncodeToString(v)
	default:
		value = v.Any() // a boolean, an integer or a text
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic("plan: " + err.Error()) // partitionLiteral makes no such value
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

func encodeFloat(f float64, bits int) any {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return json.RawMessage(strconv.FormatFloat(f, 'g', -1, bits))
}

// Decode reads the wire form of a task of the table.
func Decode(text []byte, table *meta.Table) (*Task, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var wire wireTask
	if err := d.Decode(&wire); err != nil {
		return nil, errs.New(errs.InvalidArgument, "not a task: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	switch {
	case wire.Version != wireVersion:
		return nil, errs.New(errs.InvalidArgument, "version is %d; it must be %d, the version of tasks that this library knows", wire.Version, wireVersion)
	case wire.Data == nil:
		return nil, errs.New(errs.InvalidArgument, "data is missing: a task must name its data file")
	}
	data, err := decodeFile(wire.Data, table)
	if err == nil && data.Content != Data {
		err = errs.New(errs.InvalidArgument, "content is %q; it must be %q", wire.Data.Content, wireContents[Data])
	}
	if err != nil {
		return nil, errs.Wrap(err, "read data", wire.Data.Path)
	}
	t := &Task{Data: data}
	for i, one := range wire.Deletes {
		if one == nil {
			return nil, errs.New(errs.InvalidArgument, "deletes[%d] is null; it must be a delete file", i)
		}
		f, err := decodeFile(one, table)
		if err == nil {
			err = checkDelete(f)
		}
		if err != nil {
			return nil, errs.Wrap(err, "read deletes["+strconv.Itoa(i)+"]", one.Path)
		}
		t.Deletes = append(t.Deletes, f)
	}
	slices.SortStableFunc(t.Deletes, func(a, b *File) int {
		switch {
		case a.DataSequence < b.DataSequence:
			return -1
		case a.DataSequence > b.DataSequence:
			return 1
		}
		return 0
	})
	return t, nil
}

// checkDelete refuses what no manifest could have said of a delete file.
func checkDelete(f *File) error {
	switch {
	case f.Content == Data:
		return errs.New(errs.InvalidArgument, "content is %q; it must be %q or %q", wireContents[Data], wireContents[PositionDeletes], wireContents[EqualityDeletes])
	case f.Content == EqualityDeletes && len(f.EqualityIDs) == 0:
		return errs.New(errs.InvalidArgument, "equality_ids is missing: equality deletes must name their key columns")
	case f.IsDV() && (f.ReferencedDataFile == nil || f.ContentOffset == nil || f.ContentSize == nil):
		return errs.New(errs.InvalidArgument, "a deletion vector needs referenced_data_file, content_offset and content_size_in_bytes")
	case f.IsDV() && (*f.ContentOffset < 0 || *f.ContentSize < 0):
		return errs.New(errs.InvalidArgument, "content_offset %d and content_size_in_bytes %d must not be negative", *f.ContentOffset, *f.ContentSize)
	}
	return nil
}

func decodeFile(wire *wireFile, table *meta.Table) (*File, error) {
	f := &File{
		Content: -1, Path: wire.Path, Format: strings.ToUpper(wire.Format), RecordCount: -1,
		SpecID: wire.SpecID, SnapshotID: wire.SnapshotID, FileSequence: -1, FirstRowID: wire.FirstRowID,
		EqualityIDs: wire.EqualityIDs, ReferencedDataFile: wire.ReferencedDataFile,
		ContentOffset: wire.ContentOffset, ContentSize: wire.ContentSize,
		SortOrderID: wire.SortOrderID, SplitOffsets: wire.SplitOffsets,
	}
	for content, name := range wireContents {
		if name == wire.Content {
			f.Content = content
		}
	}
	switch {
	case f.Content == -1:
		return nil, errs.New(errs.InvalidArgument, `content is %q; it must be "data", "position-deletes" or "equality-deletes"`, wire.Content)
	case wire.Path == "":
		return nil, errs.New(errs.InvalidArgument, "path is missing")
	case wire.Format == "":
		return nil, errs.New(errs.InvalidArgument, "format is missing")
	case wire.Size == nil || *wire.Size < 0:
		return nil, errs.New(errs.InvalidArgument, "file_size_in_bytes must be a whole number of at least 0")
	case wire.DataSequence == nil || *wire.DataSequence < 0:
		return nil, errs.New(errs.InvalidArgument, "data_sequence_number must be a whole number of at least 0")
	}
	f.Size, f.DataSequence = *wire.Size, *wire.DataSequence
	if wire.RecordCount != nil {
		f.RecordCount = *wire.RecordCount
	}
	if wire.FileSequence != nil {
		f.FileSequence = *wire.FileSequence
	}
	spec, ok := table.SpecByID(wire.SpecID)
	if !ok {
		return nil, errs.New(errs.InvalidArgument, "spec_id is %d, which the table does not have", wire.SpecID)
	}
	types := table.PartitionTypes(spec)
	if len(wire.Partition) != len(types) {
		return nil, errs.New(errs.InvalidArgument, "partition has %d values; partition spec %d has %d fields", len(wire.Partition), wire.SpecID, len(types))
	}
	for i, typ := range types {
		lit, err := decodeLiteral(typ, wire.Partition[i])
		if err != nil {
			return nil, errs.New(errs.InvalidArgument, "the partition value %s of %q is not a %s", wire.Partition[i], spec.Field(i).Name, typ)
		}
		f.Partition = append(f.Partition, lit)
	}
	return f, nil
}

// decodeLiteral undoes EncodeLiteral.
func decodeLiteral(typ iceberg.Type, raw json.RawMessage) (iceberg.Literal, error) {
	var value any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	text, isText := value.(string)
	switch v := value.(type) {
	case nil:
		return nil, nil
	case bool:
		return partitionLiteral(typ, v)
	case json.Number:
		text = v.String()
	}
	switch t := typ.(type) {
	case iceberg.Float32Type:
		f, err := strconv.ParseFloat(text, 32)
		if err != nil {
			return nil, err
		}
		return iceberg.Float32Literal(f), nil
	case iceberg.Float64Type:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, err
		}
		return iceberg.Float64Literal(f), nil
	case iceberg.DecimalType:
		return decodeDecimal(t, text)
	case iceberg.UUIDType:
		id, err := uuid.Parse(text)
		if err != nil {
			return nil, err
		}
		return iceberg.UUIDLiteral(id), nil
	case iceberg.FixedType, iceberg.BinaryType:
		b, err := hex.DecodeString(text)
		if err != nil {
			return nil, err
		}
		return partitionLiteral(typ, b)
	case iceberg.StringType, iceberg.UnknownType:
		if isText {
			return iceberg.StringLiteral(text), nil
		}
	}
	if isText {
		return nil, errNotOfType
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, err
	}
	return partitionLiteral(typ, n)
}

func decodeDecimal(typ iceberg.DecimalType, text string) (iceberg.Literal, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	n, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok || len(fraction) != typ.Scale() || n.BitLen() > 126 {
		return nil, errNotOfType
	}
	return iceberg.DecimalLiteral{Val: decimal128.FromBigInt(n), Scale: typ.Scale()}, nil
}

// ReadSize is how many bytes a reader of the task reads at most: of the data
// file and of its delete files, of a deletion vector its blob.
func (t *Task) ReadSize() int64 {
	size := t.Data.Size
	for _, f := range t.Deletes {
		if f.ContentSize != nil {
			size += *f.ContentSize
		} else {
			size += f.Size
		}
	}
	return size
}

// Split cuts tasks, in their order, into at most n runs of about the same
// number of bytes to read: none exceeds its share by more than one task. No run
// is empty.
func Split(tasks []*Task, n int) [][]*Task {
	total := int64(0)
	for _, t := range tasks {
		total += t.ReadSize()
	}
	var runs [][]*Task
	share := float64(total) / float64(max(n, 1))
	before, current := 0.0, -1
	for _, t := range tasks {
		// A task belongs to the run that its middle falls into.
		size := float64(t.ReadSize())
		run := 0
		if share > 0 {
			run = min(int((before+size/2)/share), n-1)
		}
		if run != current {
			runs, current = append(runs, nil), run
		}
		runs[len(runs)-1] = append(runs[len(runs)-1], t)
		before += size
	}
	return runs
}
