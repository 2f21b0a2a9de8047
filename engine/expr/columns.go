package expr

import (
	"slices"
	"strings"

	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// column is a leaf column of the schema that a predicate tests.
type column struct {
	id   int
	name string
	typ  iceberg.Type
	kind kind
	// required is what the schema says of the leaf itself; a parent may be
	// null all the same if nested.
	required bool
	nested   bool
}

// columnIndex finds columns by full name or field id.
type columnIndex struct {
	fold   bool
	byName map[string][]int
	byID   map[int]*indexed
	// names are the full names of the columns that a predicate can test.
	names []string
}

type indexed struct {
	column
	// repeated is the list or map that the column is inside of, if any.
	repeated string
}

func indexColumns(s *iceberg.Schema, caseSensitive bool) *columnIndex {
	x := &columnIndex{fold: !caseSensitive, byName: map[string][]int{}, byID: map[int]*indexed{}}
	for _, f := range s.Fields() {
		x.add(f, "", "")
	}
	return x
}

// add indexes a field and what is inside it. A schema is as deep as its JSON
// was allowed to be when it was parsed, so this may recurse.
func (x *columnIndex) add(f iceberg.NestedField, parent, repeated string) {
	name := f.Name
	if parent != "" {
		name = parent + "." + f.Name
	}
	k, comparable := kindOf(f.Type)
	c := &indexed{repeated: repeated, column: column{
		id: f.ID, name: name, typ: f.Type, kind: k, required: f.Required, nested: parent != "",
	}}
	x.byID[f.ID] = c
	key := x.key(name)
	x.byName[key] = append(x.byName[key], f.ID)
	if comparable && repeated == "" {
		x.names = append(x.names, name)
	}
	nested, ok := f.Type.(iceberg.NestedType)
	if !ok {
		return
	}
	if _, isStruct := f.Type.(*iceberg.StructType); !isStruct && repeated == "" {
		repeated = name
	}
	for _, child := range nested.Fields() {
		x.add(child, name, repeated)
	}
}

func (x *columnIndex) key(name string) string {
	if x.fold {
		return strings.ToLower(name)
	}
	return name
}

// find resolves a reference to a column that a predicate can test.
func (x *columnIndex) find(r ref) (*column, error) {
	c, ok := (*indexed)(nil), false
	if r.hasID {
		if c, ok = x.byID[r.id]; !ok {
			return nil, errs.New(errs.InvalidArgument, "filter: the table has no column with field id %d", r.id)
		}
	} else {
		ids := x.byName[x.key(r.name)]
		switch len(ids) {
		case 0:
			return nil, errs.New(errs.InvalidArgument, "filter: the table has no column %q%s", r.name, x.suggest(r.name))
		case 1:
			c = x.byID[ids[0]]
		default:
			return nil, errs.New(errs.InvalidArgument, "filter: column name %q is ambiguous: it is the name of %d columns (field ids %v)", r.name, len(ids), ids)
		}
	}
	if c.repeated != "" {
		return nil, errs.New(errs.InvalidArgument, "filter: column %q is inside the list or map %q; a filter can use only columns outside of lists and maps", c.name, c.repeated)
	}
	if _, ok := kindOf(c.typ); !ok {
		switch t := c.typ.(type) {
		case iceberg.VariantType, iceberg.GeometryType, iceberg.GeographyType:
			return nil, errs.New(errs.Unsupported, "filter: column %q is of type %s, on which filters are not supported", c.name, t)
		default:
			return nil, errs.New(errs.InvalidArgument, "filter: column %q is a %s; a filter can use only primitive columns", c.name, t.Type())
		}
	}
	return &c.column, nil
}

// suggest names up to three columns that are spelled alike, or else those
// there are.
func (x *columnIndex) suggest(name string) string {
	type near struct {
		name     string
		distance int
	}
	var found []near
	wanted := strings.ToLower(name)
	for _, candidate := range x.names {
		have := strings.ToLower(candidate)
		d := editDistance(wanted, have)
		if last := strings.LastIndexByte(have, '.'); last >= 0 && have[last+1:] == wanted {
			d = 0
		}
		if d <= max(1, len(wanted)/3) {
			found = append(found, near{candidate, d})
		}
	}
	if len(found) == 0 {
		return "; the columns are " + x.list()
	}
	slices.SortStableFunc(found, func(a, b near) int { return a.distance - b.distance })
	var list []string
	for _, f := range found[:min(len(found), 3)] {
		list = append(list, "\""+f.name+"\"")
	}
	return "; did you mean " + strings.Join(list, " or ") + "?"
}

// list names the columns that a predicate can test, the first of many.
func (x *columnIndex) list() string {
	const most = 20
	if len(x.names) > most {
		return strings.Join(x.names[:most], ", ") + ", ..."
	}
	return strings.Join(x.names, ", ")
}

// editDistance is how many bytes must be inserted, removed or replaced to turn
// a into b; for long names, just too many.
func editDistance(a, b string) int {
	const longest = 128
	if len(a) > longest || len(b) > longest {
		return longest
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
