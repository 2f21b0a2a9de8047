package meta

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// jsonError says in the words of JSON, not of Go, what a decoder met in the
// place of what it wanted. whole names the document and what it is to be, for a
// value that is no part of it.
func jsonError(err error, whole string) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	got := wrong.Value
	switch kind, number, _ := strings.Cut(got, " "); kind {
	case "array", "object":
		got = "an " + kind
	case "string":
		got = "a string"
	case "bool":
		got = "a boolean"
	case "number":
		if got = "a number"; number != "" {
			got = "the number " + number
		}
	}
	if wrong.Field == "" {
		return fmt.Errorf("the document is %s; %s", got, whole)
	}
	return fmt.Errorf("%s is %s; it must be %s", wrong.Field, got, inJSON(wrong.Type))
}

// inJSON is what JSON has for a type of Go.
func inJSON(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return inJSON(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int64:
		return "a whole number of at most 64 bits"
	case reflect.Int32, reflect.Uint32:
		return "a whole number of at most 32 bits"
	}
	return "an object"
}
