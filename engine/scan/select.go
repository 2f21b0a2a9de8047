package scan

import (
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/meta"
	"github.com/icebergexec/icebergexec/engine/project"
)

// The metadata columns, which no file stores, with the ids that the spec
// reserves for them. Row lineage is different: a file may store it.
const (
	fileColumn      = "_file"
	positionColumn  = "_pos"
	specColumn      = "_spec_id"
	partitionColumn = "_partition"

	fileColumnID      = 2147483646
	positionColumnID  = 2147483645
	specColumnID      = 2147483643
	partitionColumnID = 2147483642
)

// Selection is what a scan returns: columns of a schema and metadata columns.
type Selection struct {
	// Schema is the Arrow schema of the result.
	Schema *arrow.Schema
	// stored are the columns that data files may store, in the order of the
	// result, pruned to the selected fields. Row lineage is among them.
	stored *iceberg.Schema
	// kinds says for each column of the result where it comes from.
	kinds []columnKind
	// partition is the type of _partition: the fields of all specs.
	partition []iceberg.NestedField
	arrow     project.ArrowOptions
}

type columnKind int

const (
	storedKind columnKind = iota // the next column of stored
	fileKind
	positionKind
	specKind
	partitionKind
)

// Select resolves names in a schema; nil selects every column. The order is
// that of the names; fields of one struct come together, in the schema's order,
// where the first of them is named.
func Select(table *meta.Table, schema *iceberg.Schema, names []string, caseSensitive bool, options project.ArrowOptions) (*Selection, error) {
	s := &Selection{arrow: options}
	var columns []iceberg.NestedField
	if names == nil {
		columns = schema.Fields()
		s.kinds = make([]columnKind, len(columns))
	} else {
		var err error
		if columns, err = s.resolve(table, schema, names, caseSensitive); err != nil {
			return nil, err
		}
	}
	var storedFields []iceberg.NestedField
	for i, kind := range s.kinds {
		if kind == storedKind {
			storedFields = append(storedFields, columns[i])
		}
	}
	s.stored = iceberg.NewSchema(schema.ID, storedFields...)
	var err error
	s.Schema, err = project.ArrowSchema(iceberg.NewSchema(schema.ID, columns...), options)
	return s, err
}

// picked is one column of the result while its names are resolved: the whole
// column, or the ids of the fields that are wanted of it.
type picked struct {
	field iceberg.NestedField
	whole bool
	ids   map[int]bool
}

func (s *Selection) resolve(table *meta.Table, schema *iceberg.Schema, names []string, caseSensitive bool) ([]iceberg.NestedField, error) {
	var order []*picked
	byTop := map[int]*picked{}
	seen := map[int]string{}
	for _, name := range names {
		field, kind, top, err := s.find(table, schema, name, caseSensitive)
		if err != nil {
			return nil, err
		}
		if other, twice := seen[field.ID]; twice && other == name {
			return nil, errs.New(errs.InvalidArgument, "column %q is selected twice", name)
		} else if twice {
			return nil, errs.New(errs.InvalidArgument, "column %q is selected twice, as %q too", name, other)
		}
		seen[field.ID] = name
		p := byTop[top.ID]
		if p == nil {
			p = &picked{field: top, ids: map[int]bool{}}
			byTop[top.ID] = p
			order = append(order, p)
			s.kinds = append(s.kinds, kind)
		}
		p.whole = p.whole || field.ID == top.ID
		p.ids[field.ID] = true
	}
	columns := make([]iceberg.NestedField, len(order))
	for i, p := range order {
		columns[i] = p.field
		if !p.whole {
			columns[i].Type, _ = pruneType(p.field.Type, p.ids)
		}
	}
	return columns, nil
}

// find resolves one name to its field and the top-level column that holds it.
func (s *Selection) find(table *meta.Table, schema *iceberg.Schema, name string, caseSensitive bool) (field iceberg.NestedField, kind columnKind, top iceberg.NestedField, err error) {
	ok := false
	if caseSensitive {
		field, ok = schema.FindFieldByName(name)
	} else if field, ok = schema.FindFieldByName(name); !ok {
		if field, ok, err = findFolded(schema, name); err != nil {
			return field, 0, top, err
		}
	}
	if ok {
		for _, top := range schema.Fields() {
			if contains(top, field.ID) {
				return field, storedKind, top, nil
			}
		}
	}
	field, kind, ok = s.metadataColumn(table, name, caseSensitive)
	if !ok {
		return field, 0, top, errs.New(errs.InvalidArgument, "there is no column %q; the columns are %s", name, columnNames(schema))
	}
	return field, kind, field, nil
}

// findFolded finds a name in any case, unless it fits several fields.
func findFolded(schema *iceberg.Schema, name string) (iceberg.NestedField, bool, error) {
	all, err := iceberg.IndexByName(schema)
	if err != nil {
		return iceberg.NestedField{}, false, errs.New(errs.Corrupt, "the schema's names cannot be resolved: %v", err)
	}
	var matches []string
	for _, other := range slices.Sorted(maps.Keys(all)) {
		if strings.EqualFold(other, name) {
			matches = append(matches, other)
		}
	}
	switch len(matches) {
	case 0:
		return iceberg.NestedField{}, false, nil
	case 1:
		field, ok := schema.FindFieldByID(all[matches[0]])
		return field, ok, nil
	}
	return iceberg.NestedField{}, false, errs.New(errs.InvalidArgument, "column %q fits several columns when case is ignored: %s", name, strings.Join(matches, ", "))
}

func columnNames(schema *iceberg.Schema) string {
	const most = 20
	var names []string
	for i, f := range schema.Fields() {
		if i == most {
			names = append(names, "...")
			break
		}
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

func contains(field iceberg.NestedField, id int) bool {
	if field.ID == id {
		return true
	}
	if nested, ok := field.Type.(iceberg.NestedType); ok {
		for _, child := range nested.Fields() {
			if contains(child, id) {
				return true
			}
		}
	}
	return false
}

// pruneType leaves out of a nested type what no id asks for; false when nothing
// is left. A map keeps its key whenever anything of its value is wanted.
func pruneType(t iceberg.Type, ids map[int]bool) (iceberg.Type, bool) {
	keepField := func(f iceberg.NestedField) (iceberg.Type, bool) {
		if ids[f.ID] {
			return f.Type, true
		}
		return pruneType(f.Type, ids)
	}
	switch t := t.(type) {
	case *iceberg.StructType:
		var fields []iceberg.NestedField
		for _, f := range t.FieldList {
			if typ, ok := keepField(f); ok {
				f.Type = typ
				fields = append(fields, f)
			}
		}
		return &iceberg.StructType{FieldList: fields}, len(fields) > 0
	case *iceberg.ListType:
		element, ok := keepField(t.ElementField())
		return &iceberg.ListType{ElementID: t.ElementID, Element: element, ElementRequired: t.ElementRequired}, ok
	case *iceberg.MapType:
		_, key := keepField(t.KeyField())
		value, ok := keepField(t.ValueField())
		if !ok {
			value = t.ValueType
		}
		return &iceberg.MapType{KeyID: t.KeyID, KeyType: t.KeyType, ValueID: t.ValueID, ValueType: value, ValueRequired: t.ValueRequired}, ok || key
	}
	return nil, false
}

func (s *Selection) metadataColumn(table *meta.Table, name string, caseSensitive bool) (iceberg.NestedField, columnKind, bool) {
	same := func(other string) bool {
		return name == other || !caseSensitive && strings.EqualFold(name, other)
	}
	switch lineage := table.FormatVersion >= 3; {
	case same(fileColumn):
		return iceberg.NestedField{ID: fileColumnID, Name: fileColumn, Type: iceberg.StringType{}, Required: true}, fileKind, true
	case same(positionColumn):
		return iceberg.NestedField{ID: positionColumnID, Name: positionColumn, Type: iceberg.Int64Type{}, Required: true}, positionKind, true
	case same(specColumn):
		return iceberg.NestedField{ID: specColumnID, Name: specColumn, Type: iceberg.Int32Type{}, Required: true}, specKind, true
	case same(partitionColumn):
		s.partition = partitionFields(table)
		return iceberg.NestedField{ID: partitionColumnID, Name: partitionColumn, Type: &iceberg.StructType{FieldList: s.partition}, Required: true}, partitionKind, true
	case lineage && same(iceberg.RowIDColumnName):
		return withoutDoc(iceberg.RowID()), storedKind, true
	case lineage && same(iceberg.LastUpdatedSequenceNumberColumnName):
		return withoutDoc(iceberg.LastUpdatedSequenceNumber()), storedKind, true
	}
	return iceberg.NestedField{}, 0, false
}

func withoutDoc(f iceberg.NestedField) iceberg.NestedField {
	f.Doc = ""
	return f
}

// partitionFields are the partition fields of all specs, by id; a field that
// later specs turned into void keeps the type it had.
func partitionFields(table *meta.Table) []iceberg.NestedField {
	byID := map[int]iceberg.NestedField{}
	specs := table.Specs()
	slices.SortFunc(specs, func(a, b iceberg.PartitionSpec) int { return b.ID() - a.ID() })
	for _, spec := range specs {
		types := table.PartitionTypes(&spec)
		for i, f := range spec.Fields() {
			if _, void := f.Transform.(iceberg.VoidTransform); void {
				continue
			}
			if _, known := byID[f.FieldID]; !known {
				byID[f.FieldID] = iceberg.NestedField{ID: f.FieldID, Name: f.Name, Type: types[i]}
			}
		}
	}
	fields := make([]iceberg.NestedField, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		fields = append(fields, byID[id])
	}
	return fields
}
