package expr

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
)

// TestPyIceberg compares with what pyiceberg's own row filters gave; the
// comment in tests/tools/gen_expr_oracle.py describes the file.
func TestPyIceberg(t *testing.T) {
	type table struct {
		Name    string
		Columns []struct {
			ID         int
			Name, Type string
			Required   bool
			Values     []json.RawMessage
		}
		Absent []int
		Cases  []struct {
			Filter       json.RawMessage
			Scan, Delete []int
			Given        *struct {
				Type  json.RawMessage
				Value json.RawMessage
			}
		}
	}
	text, err := os.ReadFile("testdata/pyiceberg.json")
	if err != nil {
		t.Fatal(err)
	}
	var oracle struct{ Tables []table }
	if err := json.Unmarshal(text, &oracle); err != nil {
		t.Fatal(err)
	}
	for _, table := range oracle.Tables {
		t.Run(table.Name, func(t *testing.T) {
			alloc := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer alloc.AssertSize(t, 0)
			var fields []iceberg.NestedField
			columns := map[int]arrow.Array{}
			rows := 0
			for _, c := range table.Columns {
				f := field(t, c.ID, c.Name, c.Type, c.Required)
				fields = append(fields, f)
				values := make([]iceberg.Literal, len(c.Values))
				for i, raw := range c.Values {
					if string(raw) != "null" {
						values[i] = wireLiteral(t, f.Type, raw)
					}
				}
				rows = len(values)
				arr := arrayOf(alloc, arrowType(f.Type), values)
				defer arr.Release()
				columns[c.ID] = arr
			}
			schema := iceberg.NewSchema(0, fields...)
			absent := func(id int) (iceberg.Literal, bool) { return nil, slices.Contains(table.Absent, id) }

			check := func(filter []byte, scan, deleted []int) {
				e, err := Parse(filter)
				if err != nil {
					t.Fatalf("%s: %v", filter, err)
				}
				b, err := e.Bind(schema, true)
				if err != nil {
					t.Fatalf("%s: %v", filter, err)
				}
				if got := matching(t, b.WithConstants(PyIcebergScan, absent), PyIcebergScan, rows, columns); !slices.Equal(got, scan) {
					t.Errorf("scan %s: rows %v, pyiceberg %v", filter, got, scan)
				}
				if got := matching(t, b, PyIcebergDelete, rows, columns); !slices.Equal(got, deleted) {
					t.Errorf("delete %s: rows %v, pyiceberg %v", filter, got, deleted)
				}
			}
			for _, c := range table.Cases {
				check(c.Filter, c.Scan, c.Delete)
				if c.Given == nil {
					continue
				}
				// The same comparison with the literal as the user gave it.
				var nodes []map[string]json.RawMessage
				if err := json.Unmarshal(c.Filter, &nodes); err != nil {
					t.Fatal(err)
				}
				if nodes[0]["type"] != nil {
					nodes[0]["type"], nodes[0]["value"] = c.Given.Type, c.Given.Value
					filter, _ := json.Marshal(nodes)
					check(filter, c.Scan, c.Delete)
				}
			}
		})
	}
}

// wireLiteral reads a literal of the wire form and gives it exactly a type.
func wireLiteral(t testing.TB, typ iceberg.Type, raw json.RawMessage) iceberg.Literal {
	t.Helper()
	name := typ.Type()
	switch typ.(type) {
	case iceberg.DecimalType:
		name = "decimal"
	case iceberg.FixedType:
		name = "fixed"
	}
	w, err := wireType(name)
	if err != nil {
		t.Fatal(err)
	}
	lit, err := w.read(raw)
	if err != nil {
		t.Fatal(err)
	}
	return lit
}
