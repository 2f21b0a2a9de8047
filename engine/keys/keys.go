// Package keys encodes the values of key columns so that equal keys are found
// by hashing, and maps them to sequence numbers.
//
//	arrow arrays (file's types)   Rows.Bind         block of 1,024 rows
//	  int32, date, dictionary ──> promoted to   ──> words / texts / nulls ──> hashes
//	  decimal128, views, ...      the key types                                │
//	                                                  Bloom filter, one word ──┤
//	                                                  Table: key -> sequence <─┘ few candidates
//
// Two keys are equal when every column is: null equals only null, floats
// compare as Java orders them (all NaNs are equal, -0.0 differs from 0.0),
// decimals by value, strings, binary, fixed and uuid by bytes. Values are
// compared in the key column's type, the newest that the table gives it, so an
// int32 file matches an int64 file.
//
// A key of at most two machine words (two integers, dates, timestamps, floats
// or short decimals, or one uuid or long decimal) is kept as words; any other
// as the bytes of the canonical encoding, which is also what spills:
//
//	null            0x00
//	one word        0x01, 8 bytes little endian
//	two words       0x01, 16 bytes little endian
//	bytes           0x01, length as uvarint, the bytes
//
// The encoding is for equality only; it does not order.
package keys

import (
	"math/rand/v2"

	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// form is how the values of one column are held.
type form int

const (
	oneWord  form = iota // bool, int, long, float, double, date, time, timestamps, decimals of up to 18 digits
	twoWords             // uuid and longer decimals
	text                 // string, binary, fixed
)

// maxWordDecimal is the greatest precision whose unscaled values fit 64 bits.
const maxWordDecimal = 18

func formOf(t iceberg.Type) (form, bool) {
	switch t := t.(type) {
	case iceberg.BooleanType, iceberg.Int32Type, iceberg.Int64Type, iceberg.Float32Type, iceberg.Float64Type,
		iceberg.DateType, iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType,
		iceberg.TimestampNsType, iceberg.TimestampTzNsType, iceberg.UnknownType:
		return oneWord, true
	case iceberg.DecimalType:
		if t.Precision() <= maxWordDecimal {
			return oneWord, true
		}
		return twoWords, true
	case iceberg.UUIDType:
		return twoWords, true
	case iceberg.StringType, iceberg.BinaryType, iceberg.FixedType:
		return text, true
	}
	return 0, false
}

// Layout is how keys over given columns are held. Keys are compared only with
// keys of the same Layout. It is immutable.
type Layout struct {
	fields []iceberg.NestedField
	forms  []form
	// words is the number of words of a key held as words, 0 for one held as bytes.
	words int
	// The seeds are random, so that nobody can prepare keys that collide.
	seed, textSeed uint64
}

// NewLayout makes the layout of keys over primitive columns, which may lie in
// structs. It fails with Unsupported for a type that cannot be a key.
func NewLayout(fields []iceberg.NestedField) (*Layout, error) {
	if len(fields) == 0 {
		return nil, errs.New(errs.InvalidArgument, "a key needs at least one column")
	}
	l := &Layout{fields: fields, seed: rand.Uint64(), textSeed: rand.Uint64()}
	fixed := true
	for _, f := range fields {
		form, ok := formOf(f.Type)
		if !ok {
			return nil, errs.New(errs.Unsupported, "column %q (field id %d) of type %s cannot be a key: only primitive columns can", f.Name, f.ID, f.Type)
		}
		l.forms = append(l.forms, form)
		l.words += int(form) + 1
		fixed = fixed && form != text
	}
	if !fixed || l.words > 2 {
		l.words = 0
	}
	return l, nil
}

// Fields are the key columns in the order of the key.
func (l *Layout) Fields() []iceberg.NestedField { return l.fields }
