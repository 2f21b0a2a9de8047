package scan

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

// readKeys reads key columns of a whole data file ahead of its turn, for keys
// that are on disk.
func (s *Scan) readKeys(ctx context.Context, t *plan.Task, fields []iceberg.NestedField,
	use func(window batch.Range, column func(fieldID int) (arrow.Array, error)) error) (err error) {
	path := t.Data.Path
	closing := func(c io.Closer) {
		if closeErr := c.Close(); err == nil {
			err = errs.Wrap(closeErr, "close", path)
		}
	}
	file, err := s.open(ctx, t.Data, s.cfg.Pool)
	if err != nil {
		return err
	}
	defer closing(file)
	options, err := s.projectOptions(t.Data)
	if err != nil {
		return err
	}
	projection, err := project.New(file.Schema(), iceberg.NewSchema(0), fields, options)
	if err != nil {
		return err
	}
	reader, err := file.NewReader(ctx, projection.Columns(), nil)
	if err != nil {
		return err
	}
	defer closing(reader)
	for {
		rows, err := reader.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.readKeyWindow(ctx, reader, projection, rows, use); err != nil {
			return errs.Wrap(err, "read", path)
		}
	}
}

func (s *Scan) readKeyWindow(ctx context.Context, reader batch.FileReader, projection *project.Projection, rows batch.Range,
	use func(batch.Range, func(int) (arrow.Array, error)) error) error {
	columns, leaves := map[int]arrow.Array{}, map[int]arrow.Array{}
	defer func() {
		for _, arrays := range []map[int]arrow.Array{columns, leaves} {
			for _, a := range arrays {
				a.Release()
			}
		}
	}()
	return use(rows, func(id int) (arrow.Array, error) {
		if a := leaves[id]; a != nil {
			return a, nil
		}
		var column arrow.Array
		if i := projection.LeafColumn(id); i != project.NoColumn {
			if columns[i] == nil {
				read, err := reader.Read(ctx, []int{i}, nil)
				if err != nil {
					return nil, err
				}
				columns[i] = read[0]
			}
			column = columns[i]
		}
		a, err := projection.Leaf(s.cfg.Alloc, id, column, int(rows.Len()))
		if err != nil {
			return nil, err
		}
		leaves[id] = a
		return a, nil
	})
}
