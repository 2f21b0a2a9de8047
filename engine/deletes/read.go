package deletes

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/batch"
	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/plan"
	"github.com/icebergexec/icebergexec/engine/project"
)

// rowSource says what to read of a delete file.
type rowSource struct {
	file   *plan.File
	fields []iceberg.NestedField
	// nameMapping serves files without field ids.
	nameMapping func() (iceberg.NameMapping, error)
	// constants by field id stand in for columns that the file lacks.
	constants map[int]any
}

// readRows calls use with the fields' values for every batch of a delete
// file's rows. The arrays are released when use returns.
func (r *Resolver) readRows(ctx context.Context, source rowSource, use func(leaves []arrow.Array) error) (err error) {
	path := source.file.Path
	file, err := r.cfg.Open(ctx, source.file)
	if err != nil {
		return errs.Wrap(err, "read", path)
	}
	defer func() { err = closed(file, err, path) }()
	projection, err := project.New(file.Schema(), iceberg.NewSchema(0), source.fields,
		project.Options{Path: path, NameMapping: source.nameMapping, Constants: source.constants})
	if err != nil {
		return err
	}
	for _, field := range source.fields {
		if _, constant := source.constants[field.ID]; !constant && projection.LeafColumn(field.ID) == project.NoColumn {
			return errs.At(errs.Corrupt, "read", path, "the delete file lacks column %q (field id %d)", field.Name, field.ID)
		}
	}
	columns := projection.Columns()
	if len(columns) == 0 {
		return errs.At(errs.Corrupt, "read", path, "the delete file has none of its key columns")
	}
	reader, err := file.NewReader(ctx, columns, nil)
	if err != nil {
		return errs.Wrap(err, "read", path)
	}
	defer func() { err = closed(reader, err, path) }()
	all := make([]int, len(columns))
	for i := range all {
		all[i] = i
	}
	for {
		window, err := reader.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return errs.Wrap(err, "read", path)
		}
		if err := readWindow(ctx, r, reader, projection, source, window, all, use); err != nil {
			return err
		}
	}
}

func readWindow(ctx context.Context, r *Resolver, reader batch.FileReader, projection *project.Projection, source rowSource,
	window batch.Range, columns []int, use func([]arrow.Array) error) error {
	arrays, err := reader.Read(ctx, columns, nil)
	if err != nil {
		return errs.Wrap(err, "read", source.file.Path)
	}
	defer releaseAll(arrays)
	var leaves []arrow.Array
	defer func() { releaseAll(leaves) }()
	for _, field := range source.fields {
		var array arrow.Array
		if column := projection.LeafColumn(field.ID); column != project.NoColumn {
			array = arrays[column]
		}
		leaf, err := projection.Leaf(r.cfg.Alloc, field.ID, array, int(window.Len()))
		if err != nil {
			return err
		}
		leaves = append(leaves, leaf)
	}
	return use(leaves)
}

func releaseAll(arrays []arrow.Array) {
	for _, a := range arrays {
		a.Release()
	}
}

// closed closes c and keeps the first error.
func closed(c io.Closer, err error, path string) error {
	if closeErr := c.Close(); err == nil {
		return errs.Wrap(closeErr, "close", path)
	}
	return err
}
