package meta

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
)

// rawField is a struct field as schema JSON writes it. Defaults stay raw until
// the type is known: decoded without it, a long would pass through float64 and
// lose digits.
type rawField struct {
	ID             *int            `json:"id"`
	Name           *string         `json:"name"`
	Required       bool            `json:"required"`
	Type           json.RawMessage `json:"type"`
	Doc            string          `json:"doc"`
	InitialDefault json.RawMessage `json:"initial-default"`
	WriteDefault   json.RawMessage `json:"write-default"`
}

// parseSchema reads schema JSON. Defaults of primitive fields become the value
// that iceberg.Literal.Any has for the field's type (int32, iceberg.Date,
// iceberg.Decimal, []byte ...). The default of a struct, which can only be "a
// struct of its fields' defaults", becomes an empty map; that of a list or map
// stays json.RawMessage.
func parseSchema(raw []byte) (*iceberg.Schema, error) {
	var doc struct {
		ID            int        `json:"schema-id"`
		Type          string     `json:"type"`
		IdentifierIDs []int      `json:"identifier-field-ids"`
		Fields        []rawField `json:"fields"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, jsonError(err, "a schema is a JSON object")
	}
	if doc.Type != "struct" {
		return nil, fmt.Errorf("schema %d is not a struct", doc.ID)
	}
	fields, err := parseFields(doc.Fields)
	if err != nil {
		return nil, fmt.Errorf("schema %d: %w", doc.ID, err)
	}
	if err := checkUniqueIDs(fields); err != nil { // NewSchema would panic
		return nil, fmt.Errorf("schema %d: %w", doc.ID, err)
	}
	return iceberg.NewSchemaWithIdentifiers(doc.ID, doc.IdentifierIDs, fields...), nil
}

func parseFields(raw []rawField) ([]iceberg.NestedField, error) {
	fields := make([]iceberg.NestedField, len(raw))
	for i, r := range raw {
		switch {
		case r.ID == nil:
			return nil, errors.New("a field has no id")
		case r.Name == nil:
			return nil, fmt.Errorf("field %d has no name", *r.ID)
		}
		typ, err := parseType(r.Type)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", *r.Name, err)
		}
		f := iceberg.NestedField{ID: *r.ID, Name: *r.Name, Required: r.Required, Type: typ, Doc: r.Doc}
		if f.InitialDefault, err = parseDefault(typ, r.InitialDefault); err != nil {
			return nil, fmt.Errorf("initial-default of field %q: %w", f.Name, err)
		}
		if f.WriteDefault, err = parseDefault(typ, r.WriteDefault); err != nil {
			return nil, fmt.Errorf("write-default of field %q: %w", f.Name, err)
		}
		fields[i] = f
	}
	return fields, nil
}

// parseType recurses over nesting that checkDepth has bounded.
func parseType(raw json.RawMessage) (iceberg.Type, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, errors.New("the type is missing")
	}
	if raw[0] == '"' {
		return parsePrimitive(raw)
	}
	var doc struct {
		Type            string          `json:"type"`
		Fields          []rawField      `json:"fields"`
		ElementID       *int            `json:"element-id"`
		Element         json.RawMessage `json:"element"`
		ElementRequired bool            `json:"element-required"`
		KeyID           *int            `json:"key-id"`
		Key             json.RawMessage `json:"key"`
		ValueID         *int            `json:"value-id"`
		Value           json.RawMessage `json:"value"`
		ValueRequired   bool            `json:"value-required"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, jsonError(err, "a type is a string or a JSON object")
	}
	switch doc.Type {
	case "struct":
		fields, err := parseFields(doc.Fields)
		if err != nil {
			return nil, err
		}
		return &iceberg.StructType{FieldList: fields}, nil
	case "list":
		if doc.ElementID == nil {
			return nil, errors.New("a list has no element-id")
		}
		element, err := parseType(doc.Element)
		if err != nil {
			return nil, err
		}
		return &iceberg.ListType{ElementID: *doc.ElementID, Element: element, ElementRequired: doc.ElementRequired}, nil
	case "map":
		if doc.KeyID == nil || doc.ValueID == nil {
			return nil, errors.New("a map has no key-id or value-id")
		}
		key, err := parseType(doc.Key)
		if err != nil {
			return nil, err
		}
		value, err := parseType(doc.Value)
		if err != nil {
			return nil, err
		}
		return &iceberg.MapType{KeyID: *doc.KeyID, KeyType: key, ValueID: *doc.ValueID, ValueType: value, ValueRequired: doc.ValueRequired}, nil
	}
	return nil, fmt.Errorf("unknown type %q", doc.Type)
}

// parsePrimitive takes iceberg-go's reading of a type name, which it offers
// only for whole fields.
func parsePrimitive(name json.RawMessage) (iceberg.Type, error) {
	var f iceberg.NestedField
	if err := f.UnmarshalJSON(fmt.Appendf(nil, `{"id":1,"name":"x","required":false,"type":%s}`, name)); err != nil {
		return nil, fmt.Errorf("unknown type %s", name)
	}
	return f.Type, nil
}

func checkUniqueIDs(fields []iceberg.NestedField) error {
	seen := map[int]string{}
	var walk func(fields []iceberg.NestedField) error
	walk = func(fields []iceberg.NestedField) error {
		for _, f := range fields {
			if other, twice := seen[f.ID]; twice {
				return fmt.Errorf("fields %q and %q have the same id %d", other, f.Name, f.ID)
			}
			seen[f.ID] = f.Name
			if nested, ok := f.Type.(iceberg.NestedType); ok {
				if err := walk(nested.Fields()); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return walk(fields)
}

// parseDefault reads a default value in Iceberg's JSON single-value form; nil
// for an absent or null one.
func parseDefault(typ iceberg.Type, raw json.RawMessage) (any, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	switch typ.(type) {
	case *iceberg.StructType:
		return map[string]any{}, nil
	case *iceberg.ListType, *iceberg.MapType:
		return json.RawMessage(raw), nil
	}
	text := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, err
		}
	}
	lit, err := parseLiteral(typ, text)
	if err != nil {
		return nil, fmt.Errorf("%s is not a %s", raw, typ)
	}
	return lit.Any(), nil
}

// parseLiteral reads the text of a JSON number, boolean or string.
func parseLiteral(typ iceberg.Type, text string) (iceberg.Literal, error) {
	switch typ := typ.(type) {
	case iceberg.Int32Type:
		n, err := strconv.ParseInt(text, 10, 32)
		return iceberg.Int32Literal(n), err
	case iceberg.BinaryType:
		b, err := hex.DecodeString(text)
		return iceberg.BinaryLiteral(b), err
	case iceberg.FixedType:
		b, err := hex.DecodeString(text)
		if err == nil && len(b) != typ.Len() {
			err = errors.New("wrong length")
		}
		return iceberg.FixedLiteral(b), err
	case iceberg.DecimalType:
		return parseDecimal(typ, text)
	case iceberg.UnknownType, iceberg.VariantType, iceberg.GeometryType, iceberg.GeographyType:
		return nil, errors.New("only null is allowed")
	}
	return iceberg.StringLiteral(text).To(typ)
}

// parseDecimal reads plain or scientific notation exactly.
func parseDecimal(typ iceberg.DecimalType, text string) (iceberg.Literal, error) {
	mantissa, exponent := text, 0
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(text[i+1:]); err != nil {
			return nil, err
		}
		mantissa = text[:i]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	// Decimals have at most 38 digits; the limits keep the arithmetic small.
	zeros := typ.Scale() - len(fraction) + exponent
	if len(whole)+len(fraction) > 80 || zeros > 80 || zeros < 0 {
		return nil, errors.New("it does not fit")
	}
	unscaled, ok := new(big.Int).SetString(whole+fraction+strings.Repeat("0", zeros), 10)
	if !ok {
		return nil, errors.New("not a number")
	}
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(typ.Precision())), nil)
	if unscaled.CmpAbs(limit) >= 0 {
		return nil, errors.New("it does not fit")
	}
	return iceberg.DecimalLiteral{Val: decimal128.FromBigInt(unscaled), Scale: typ.Scale()}, nil
}
