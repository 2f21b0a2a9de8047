package meta

import (
	"encoding/json"
	"fmt"

	"github.com/apache/iceberg-go"
)

// SortOrder is an order in which a table's files may be sorted.
type SortOrder struct {
	ID     int
	Fields []SortField
}

// SortField is one key of a sort order: the transformed value of a column.
type SortField struct {
	SourceIDs  []int
	Transform  iceberg.Transform
	Descending bool
	NullsFirst bool
}

// IsUnsorted reports whether the order has no keys.
func (o SortOrder) IsUnsorted() bool { return len(o.Fields) == 0 }

// UnmarshalJSON reads the order as metadata files store it.
func (o *SortOrder) UnmarshalJSON(b []byte) error {
	var doc struct {
		ID     *int `json:"order-id"`
		Fields []struct {
			SourceID  *int   `json:"source-id"`
			SourceIDs []int  `json:"source-ids"`
			Transform string `json:"transform"`
			Direction string `json:"direction"`
			NullOrder string `json:"null-order"`
		} `json:"fields"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return err
	}
	if doc.ID == nil {
		return fmt.Errorf("a sort order has no order-id")
	}
	o.ID = *doc.ID
	for _, f := range doc.Fields {
		field := SortField{SourceIDs: f.SourceIDs}
		if f.SourceID != nil {
			field.SourceIDs = []int{*f.SourceID}
		}
		if len(field.SourceIDs) == 0 {
			return fmt.Errorf("sort order %d has a field without source-id", o.ID)
		}
		var err error
		if field.Transform, err = iceberg.ParseTransform(f.Transform); err != nil {
			return fmt.Errorf("sort order %d: %w", o.ID, err)
		}
		switch f.Direction {
		case "asc":
		case "desc":
			field.Descending = true
		default:
			return fmt.Errorf("sort order %d has the direction %q; it must be asc or desc", o.ID, f.Direction)
		}
		switch f.NullOrder {
		case "nulls-first":
			field.NullsFirst = true
		case "nulls-last":
		default:
			return fmt.Errorf("sort order %d has the null order %q; it must be nulls-first or nulls-last", o.ID, f.NullOrder)
		}
		o.Fields = append(o.Fields, field)
	}
	return nil
}
