package deletes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/keys"
	"github.com/icebergexec/icebergexec/engine/mem"
	"github.com/icebergexec/icebergexec/engine/plan"
)

// keyTable holds the keys of all delete files of one scope and one set of
// equality ids. Files are added while other tasks look rows up. Keys that come
// when there is no more memory go to the overflow; those before stay here.
type keyTable struct {
	number int // in the order of making, for spilled records
	// fields are the key columns as a data file may have them: absent, with a
	// default. Those of the layout are as a delete file must have them.
	fields []iceberg.NestedField
	layout *keys.Layout
	charge *mem.Reservation

	mu    sync.RWMutex
	table *keys.Table
	full  bool // all further keys go to disk
}

func (t *keyTable) free() {
	t.table.Free()
	t.charge.Free()
}

// expect prepares for more keys. The number comes from manifests: when there is
// no room for it, the table grows with the keys that really come.
func (t *keyTable) expect(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.full {
		_ = t.table.Reserve(n)
	}
}

// tableLocked finds or makes the table of an equality-delete file.
func (r *Resolver) tableLocked(f *plan.File) (*keyTable, error) {
	ids := slices.Clone(f.EqualityIDs)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	scope, err := r.scope(f)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprint(ids, scope)
	if t := r.tables[name]; t != nil {
		return t, nil
	}
	var fields, present []iceberg.NestedField
	for _, id := range ids {
		field, ok := r.cfg.Table.Field(id)
		if !ok {
			return nil, errs.At(errs.Corrupt, "read", f.Path, "the equality-delete file has key column %d, which no schema of the table has", id)
		}
		if _, ok := r.cfg.Table.CurrentSchema().FindFieldByID(id); !ok {
			field.Required = false // files written since the column was dropped lack it
		}
		fields = append(fields, field)
		field.Required, field.InitialDefault = false, nil
		present = append(present, field)
	}
	if len(fields) == 0 {
		return nil, errs.At(errs.Corrupt, "read", f.Path, "the equality-delete file has no equality ids")
	}
	layout, err := keys.NewLayout(present)
	if err != nil {
		return nil, errs.Wrap(err, "read", f.Path)
	}
	if err := r.books.TryGrow(fileCost + int64(len(name))); err != nil {
		return nil, err
	}
	if r.memory == nil {
		if r.memory, err = newKeyMemory(r.cfg.Pool, r.cfg.spills()); err != nil {
			return nil, err
		}
	}
	t := &keyTable{number: len(r.tables), fields: fields, layout: layout, full: r.cfg.AlwaysSpill && r.cfg.spills()}
	if r.cfg.spills() {
		t.charge = r.memory.tables.ReserveSpillable("equality-delete keys")
	} else {
		t.charge = r.memory.tables.Reserve("equality-delete keys")
	}
	t.table = keys.NewTable(layout, r.cfg.Alloc, t.charge)
	r.tables[name] = t
	return t, nil
}

// scope names the data files that a delete file's keys apply to: those of its
// own spec and partition, or all when its spec has no partition field that
// counts.
func (r *Resolver) scope(f *plan.File) (string, error) {
	spec, ok := r.cfg.Table.SpecByID(f.SpecID)
	if !ok {
		return "", errs.At(errs.Corrupt, "read", f.Path, "the delete file has partition spec %d, which the table does not have", f.SpecID)
	}
	global := true
	for _, field := range spec.Fields() {
		if _, void := field.Transform.(iceberg.VoidTransform); !void {
			global = false
		}
	}
	if global {
		return "all", nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "spec %d", f.SpecID)
	for _, value := range f.Partition {
		if value == nil {
			b.WriteString(" null")
			continue
		}
		raw, err := value.MarshalBinary()
		if err != nil {
			return "", errs.WrapAs(errs.Corrupt, err, "read", f.Path)
		}
		fmt.Fprintf(&b, " %s %x", value.Type(), raw)
	}
	return b.String(), nil
}

// readKeys adds the keys of an equality-delete file to its table.
func (r *Resolver) readKeys(ctx context.Context, f *sharedFile) error {
	t := f.table
	source := rowSource{
		file: f.file, fields: t.layout.Fields(), nameMapping: r.cfg.Table.NameMapping, constants: r.identityValues(f.file),
	}
	rows, workspace := t.layout.NewRows(), &keys.Workspace{}
	return r.readRows(ctx, source, func(leaves []arrow.Array) error {
		err := rows.Bind(leaves)
		if err == nil {
			err = r.addKeys(ctx, f, workspace, rows)
		}
		return errs.Wrap(err, "read", f.file.Path)
	})
}

// addKeys adds keys to the table of their file as long as there is memory, and
// then to the overflow.
func (r *Resolver) addKeys(ctx context.Context, f *sharedFile, w *keys.Workspace, rows *keys.Rows) error {
	added, err := f.table.add(w, rows, f.file.DataSequence)
	if err != nil && (errs.CodeOf(err) != errs.MemoryLimit || !r.cfg.spills()) {
		return err
	}
	if added == rows.Len() {
		return nil
	}
	o, err := r.openOverflow(ctx)
	if err != nil {
		return err
	}
	f.spilled = true
	return o.add(ctx, f.table.number, w, rows, added, f.file.DataSequence)
}

func (t *keyTable) add(w *keys.Workspace, rows *keys.Rows, sequence int64) (added int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.full {
		return 0, nil
	}
	added, err = t.table.Add(w, rows, sequence)
	t.full = errs.CodeOf(err) == errs.MemoryLimit
	return added, err
}

// identityValues are the values of a file's identity partition fields by the
// id of their source column.
func (r *Resolver) identityValues(f *plan.File) map[int]any {
	spec, ok := r.cfg.Table.SpecByID(f.SpecID)
	if !ok {
		return nil
	}
	values := map[int]any{}
	for i, field := range spec.Fields() {
		if _, identity := field.Transform.(iceberg.IdentityTransform); identity && i < len(f.Partition) {
			values[field.SourceID()] = nil
			if f.Partition[i] != nil {
				values[field.SourceID()] = f.Partition[i].Any()
			}
		}
	}
	return values
}
