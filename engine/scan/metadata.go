package scan

import (
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/plan"
	"github.com/icebergexec/icebergexec/engine/project"
)

// metadataColumns builds the columns that come from a data file's manifest
// entry and from row positions.
type metadataColumns struct {
	cfg  *Config
	data *plan.File
	// constants gives the columns that are the same in every row: _file,
	// _spec_id and the partition fields, in this order.
	constants *project.Projection
	partition arrow.DataType
}

const (
	fileConstant = iota
	specConstant
	partitionConstants
)

func newMetadataColumns(cfg *Config, data *plan.File) (*metadataColumns, error) {
	m := &metadataColumns{cfg: cfg, data: data}
	needed := false
	for i, kind := range cfg.Selection.kinds {
		needed = needed || kind == fileKind || kind == specKind || kind == partitionKind
		if kind == partitionKind {
			m.partition = cfg.Selection.Schema.Field(i).Type
		}
	}
	if !needed {
		return m, nil
	}
	fields := append([]iceberg.NestedField{
		{ID: fileColumnID, Name: fileColumn, Type: iceberg.StringType{}, Required: true},
		{ID: specColumnID, Name: specColumn, Type: iceberg.Int32Type{}, Required: true},
	}, cfg.Selection.partition...)
	values := map[int]any{fileColumnID: data.Path, specColumnID: int32(data.SpecID)}
	if spec, ok := cfg.Table.SpecByID(data.SpecID); ok {
		for i, f := range spec.Fields() {
			if i < len(data.Partition) && data.Partition[i] != nil {
				values[f.FieldID] = data.Partition[i].Any()
			}
		}
	}
	var err error
	// A file without columns lacks them all, so that each is its constant.
	m.constants, err = project.New(arrow.NewSchema(nil, nil), iceberg.NewSchema(0, fields...), nil, project.Options{
		Path: data.Path, Constants: values, Arrow: cfg.Selection.arrow,
	})
	return m, err
}

// build makes a metadata column for the kept rows of a window.
func (m *metadataColumns) build(kind columnKind, w *window, kept int) (arrow.Array, error) {
	switch kind {
	case fileKind:
		return m.constants.Output(m.cfg.Alloc, fileConstant, nil, kept)
	case specKind:
		return m.constants.Output(m.cfg.Alloc, specConstant, nil, kept)
	case partitionKind:
		return m.buildPartition(kept)
	}
	return int64Array(m.cfg.Alloc, kept, func(values []int64) {
		w.eachKept(func(i int, position int64) { values[i] = position })
	}), nil
}

func (m *metadataColumns) buildPartition(kept int) (arrow.Array, error) {
	children := make([]arrow.ArrayData, 0, len(m.cfg.Selection.partition))
	defer func() {
		for _, child := range children {
			child.Release()
		}
	}()
	for i := range m.cfg.Selection.partition {
		a, err := m.constants.Output(m.cfg.Alloc, partitionConstants+i, nil, kept)
		if err != nil {
			return nil, err
		}
		a.Data().Retain()
		children = append(children, a.Data())
		a.Release()
	}
	data := array.NewData(m.partition, kept, []*memory.Buffer{nil}, children, 0, 0)
	defer data.Release()
	return array.MakeFromData(data), nil
}

// inherit replaces the nulls of the row lineage columns by what the manifest
// entry says. It takes over values and returns what takes its place; files
// without a first row id have no lineage to inherit.
func (m *metadataColumns) inherit(id int, values arrow.Array, w *window) (arrow.Array, error) {
	if id != iceberg.RowIDFieldID && id != iceberg.LastUpdatedSequenceNumberFieldID || m.data.FirstRowID == nil || values.NullN() == 0 {
		return values, nil
	}
	defer values.Release()
	stored := values.(*array.Int64)
	return int64Array(m.cfg.Alloc, stored.Len(), func(out []int64) {
		w.eachKept(func(i int, position int64) {
			switch {
			case stored.IsValid(i):
				out[i] = stored.Value(i)
			case id == iceberg.RowIDFieldID:
				out[i] = *m.data.FirstRowID + position
			default:
				out[i] = m.data.DataSequence
			}
		})
	}), nil
}

// eachKept visits the kept rows: i counts them, position is the file's.
func (w *window) eachKept(visit func(i int, position int64)) {
	i := 0
	for at, word := range w.keep.Words {
		for ; word != 0; word &= word - 1 {
			visit(i, w.rows.Start+int64(at<<6+bits.TrailingZeros64(word)))
			i++
		}
	}
}

// int64Array makes an array without nulls.
func int64Array(alloc memory.Allocator, n int, fill func([]int64)) arrow.Array {
	buffer := memory.NewResizableBuffer(alloc)
	defer buffer.Release()
	buffer.Resize(n * arrow.Int64SizeBytes)
	fill(arrow.Int64Traits.CastFromBytes(buffer.Bytes()))
	data := array.NewData(arrow.PrimitiveTypes.Int64, n, []*memory.Buffer{nil, buffer}, nil, 0, 0)
	defer data.Release()
	return array.MakeFromData(data)
}
