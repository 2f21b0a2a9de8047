package request

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"reflect"
	"strings"

	"github.com/icebergexec/icebergexec/engine"
	"github.com/icebergexec/icebergexec/engine/errs"
)

// decode reads a JSON object into the struct that document points to, field by
// field: a field that the struct has not, or that comes twice, is an error; null
// leaves the struct's field as it is.
func decode(text []byte, document any) error {
	fields := map[string]reflect.Value{}
	var names []string
	value := reflect.ValueOf(document).Elem()
	for i := range value.NumField() {
		name := value.Type().Field(i).Tag.Get("json")
		fields[name] = value.Field(i)
		names = append(names, name)
	}

	d := json.NewDecoder(bytes.NewReader(text))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return malformed(err)
	}
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return malformed(err)
		}
		name := token.(string) // what the decoder gives as the key of an object
		field, known := fields[name]
		switch {
		case !known:
			return errs.New(errs.InvalidArgument, "the request has an unknown field %s; known are %s", quote(name), strings.Join(names, ", "))
		case seen[name]:
			return errs.New(errs.InvalidArgument, "the request has the field %s twice", name)
		}
		seen[name] = true
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return malformed(err)
		}
		if bytes.Equal(raw, []byte("null")) {
			continue
		}
		if err := json.Unmarshal(raw, field.Addr().Interface()); err != nil {
			if errs.CodeOf(err) == errs.InvalidArgument {
				return errs.New(errs.InvalidArgument, "%s is %s; %s", name, shorten(string(raw)), err)
			}
			return errs.New(errs.InvalidArgument, "%s is %s; it must be %s", name, shorten(string(raw)), describe(field.Type(), raw))
		}
	}
	if _, err := d.Token(); err != nil {
		return malformed(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errs.New(errs.InvalidArgument, "the request goes on after its JSON object")
	}
	return nil
}

func malformed(err error) error {
	if err == nil {
		return errs.New(errs.InvalidArgument, "the request must be a JSON object")
	}
	return errs.New(errs.InvalidArgument, "the request is not a valid JSON object: %v", err)
}

// describe says what a field of the type takes, which raw is not.
func describe(t reflect.Type, raw []byte) string {
	switch t.Kind() {
	case reflect.Pointer:
		return describe(t.Elem(), raw)
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		if n, whole := new(big.Int).SetString(string(raw), 10); whole && n.Sign() > 0 {
			return fmt.Sprintf("at most %d", math.MaxInt64)
		} else if whole {
			return fmt.Sprintf("at least %d", math.MinInt64)
		}
		return "a whole number"
	case reflect.Slice:
		if t.Elem() == reflect.TypeFor[json.RawMessage]() {
			return "an array of JSON objects"
		}
		if t.Elem().Kind() == reflect.Struct {
			return "an array of objects"
		}
		return "an array of strings"
	case reflect.Map:
		return "an object whose values are strings"
	}
	return "valid JSON"
}

// Version is the form of a document. There is one.
type Version int

// UnmarshalJSON accepts the one version there is.
func (v *Version) UnmarshalJSON(text []byte) error {
	if string(text) != "1" {
		return errs.New(errs.InvalidArgument, "it must be 1, the version of requests that this library knows")
	}
	*v = 1
	return nil
}

// Size is a number of bytes, at least one, written as an integer or as a string
// with a unit.
type Size int64

// UnmarshalJSON reads either form.
func (s *Size) UnmarshalJSON(text []byte) error {
	n, err := parseSize(text)
	if err == nil && n < 1 {
		err = errs.New(errs.InvalidArgument, "it must be at least 1 byte")
	}
	*s = Size(n)
	return err
}

// MemorySize is a size that operations can make progress with.
type MemorySize int64

// UnmarshalJSON reads what a Size may be.
func (s *MemorySize) UnmarshalJSON(text []byte) error {
	n, err := parseSize(text)
	if err == nil && n < engine.MinMemoryLimit {
		err = errs.New(errs.InvalidArgument, "it must be at least 16 MiB (%d bytes)", engine.MinMemoryLimit)
	}
	*s = MemorySize(n)
	return err
}

// units are the powers of ten and of two that a size may be written in.
var units = map[string]int64{
	"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
}

const sizeForms = `it must be a whole number of bytes or a text such as "512MiB" or "1.5 GB" (KB, MB, GB, TB, KiB, MiB, GiB, TiB)`

// parseSize reads either form; the number may be zero or negative.
func parseSize(text []byte) (int64, error) {
	form := string(text)
	if strings.HasPrefix(form, `"`) {
		if err := json.Unmarshal(text, &form); err != nil {
			return 0, err
		}
	} else {
		form += "b"
	}
	at := strings.LastIndexAny(form, "0123456789.") + 1
	unit, known := units[strings.ToLower(strings.TrimSpace(form[at:]))]
	if strings.TrimSpace(form[at:]) == "" {
		unit, known = 1, true
	}
	number := strings.TrimSpace(form[:at])
	if !known || strings.Trim(strings.TrimPrefix(number, "-"), "0123456789.") != "" || strings.Count(number, ".") > 1 {
		return 0, errs.New(errs.InvalidArgument, sizeForms)
	}
	// A fraction in base ten is exact as a rational and not as a float.
	n, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, errs.New(errs.InvalidArgument, sizeForms)
	}
	n.Mul(n, new(big.Rat).SetInt64(unit))
	bytes := new(big.Int).Quo(n.Num(), n.Denom())
	if !bytes.IsInt64() {
		// Below the least, whatever that is; or above the most.
		if bytes.Sign() < 0 {
			return math.MinInt64, nil
		}
		return 0, errs.New(errs.InvalidArgument, "it must be at most %d bytes (8 EiB)", math.MaxInt64)
	}
	return bytes.Int64(), nil
}
