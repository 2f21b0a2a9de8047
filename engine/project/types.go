package project

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// FieldIDKey is the Arrow field metadata key that carries an Iceberg field id.
const FieldIDKey = "PARQUET:field_id"

// maxDepth bounds the nesting of schemas, so that nothing here recurses deeper
// on input from a file than the stack of any goroutine allows.
const maxDepth = 256

// ArrowOptions choose among the Arrow forms of an Iceberg type.
type ArrowOptions struct {
	// FieldIDs puts the field id into the metadata of every field.
	FieldIDs bool
	// LargeStrings makes string and binary use 64-bit offsets.
	LargeStrings bool
	// LargeLists makes list use 64-bit offsets.
	LargeLists bool
}

// ArrowSchema is the Arrow form of an Iceberg schema, as the projection's
// outputs have it.
//
//	boolean bool            date date32                 string  utf8 | large_utf8
//	int     int32           time time64[us]             binary  binary | large_binary
//	long    int64           timestamp(tz)    [us(,UTC)] fixed   fixed_size_binary(n)
//	float   float           timestamp(tz)_ns [ns(,UTC)] uuid    fixed_size_binary(16)
//	double  double          decimal decimal128          unknown null
//
// A uuid field is marked as the extension type arrow.uuid in its metadata, and
// a field's doc is under the metadata key doc. variant, geometry and geography
// are Unsupported.
func ArrowSchema(schema *iceberg.Schema, options ArrowOptions) (*arrow.Schema, error) {
	fields, err := options.fields(schema.Fields(), "", 0)
	if err != nil {
		return nil, err
	}
	return arrow.NewSchema(fields, nil), nil
}

func (o ArrowOptions) fields(fields []iceberg.NestedField, parent string, depth int) ([]arrow.Field, error) {
	out := make([]arrow.Field, len(fields))
	for i, f := range fields {
		var err error
		if out[i], err = o.field(f, parent, depth); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// field is the Arrow form of one field; parent is the dotted name of what
// contains it, for errors.
func (o ArrowOptions) field(f iceberg.NestedField, parent string, depth int) (arrow.Field, error) {
	name := dotted(parent, f.Name)
	dataType, err := o.dataType(f.Type, name, depth)
	if err != nil {
		return arrow.Field{}, err
	}
	var keys, values []string
	if f.Doc != "" {
		keys, values = append(keys, "doc"), append(values, f.Doc)
	}
	if o.FieldIDs {
		keys, values = append(keys, FieldIDKey), append(values, strconv.Itoa(f.ID))
	}
	if _, ok := f.Type.(iceberg.UUIDType); ok {
		keys = append(keys, "ARROW:extension:name", "ARROW:extension:metadata")
		values = append(values, "arrow.uuid", "")
	}
	return arrow.Field{Name: f.Name, Type: dataType, Nullable: !f.Required, Metadata: arrow.NewMetadata(keys, values)}, nil
}

func (o ArrowOptions) dataType(t iceberg.Type, name string, depth int) (arrow.DataType, error) {
	if depth > maxDepth {
		return nil, errs.New(errs.Unsupported, "column %s is nested deeper than %d levels", name, maxDepth)
	}
	switch t := t.(type) {
	case iceberg.BooleanType:
		return arrow.FixedWidthTypes.Boolean, nil
	case iceberg.Int32Type:
		return arrow.PrimitiveTypes.Int32, nil
	case iceberg.Int64Type:
		return arrow.PrimitiveTypes.Int64, nil
	case iceberg.Float32Type:
		return arrow.PrimitiveTypes.Float32, nil
	case iceberg.Float64Type:
		return arrow.PrimitiveTypes.Float64, nil
	case iceberg.DecimalType:
		return &arrow.Decimal128Type{Precision: int32(t.Precision()), Scale: int32(t.Scale())}, nil
	case iceberg.DateType:
		return arrow.FixedWidthTypes.Date32, nil
	case iceberg.TimeType:
		return arrow.FixedWidthTypes.Time64us, nil
	case iceberg.TimestampType:
		return &arrow.TimestampType{Unit: arrow.Microsecond}, nil
	case iceberg.TimestampTzType:
		return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, nil
	case iceberg.TimestampNsType:
		return &arrow.TimestampType{Unit: arrow.Nanosecond}, nil
	case iceberg.TimestampTzNsType:
		return &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}, nil
	case iceberg.StringType:
		if o.LargeStrings {
			return arrow.BinaryTypes.LargeString, nil
		}
		return arrow.BinaryTypes.String, nil
	case iceberg.BinaryType:
		if o.LargeStrings {
			return arrow.BinaryTypes.LargeBinary, nil
		}
		return arrow.BinaryTypes.Binary, nil
	case iceberg.FixedType:
		return &arrow.FixedSizeBinaryType{ByteWidth: t.Len()}, nil
	case iceberg.UUIDType:
		return &arrow.FixedSizeBinaryType{ByteWidth: 16}, nil
	case iceberg.UnknownType:
		return arrow.Null, nil
	case *iceberg.StructType:
		fields, err := o.fields(t.FieldList, name, depth+1)
		if err != nil {
			return nil, err
		}
		return arrow.StructOf(fields...), nil
	case *iceberg.ListType:
		element, err := o.field(t.ElementField(), name, depth+1)
		if err != nil {
			return nil, err
		}
		if o.LargeLists {
			return arrow.LargeListOfField(element), nil
		}
		return arrow.ListOfField(element), nil
	case *iceberg.MapType:
		key, err := o.field(t.KeyField(), name, depth+1)
		if err != nil {
			return nil, err
		}
		value, err := o.field(t.ValueField(), name, depth+1)
		if err != nil {
			return nil, err
		}
		return arrow.MapOfFields(key, value), nil
	}
	return nil, errs.New(errs.Unsupported, "column %s has type %s, which this version does not read; leave it out of the selected columns", name, t)
}

func dotted(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}
