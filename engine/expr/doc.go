// Package expr holds predicates over the rows of an Iceberg table.
//
//	wire form, REST JSON, constructors
//	             │
//	           Expr            names and literals as given
//	             │ Bind(schema)
//	           Bound           field ids, literals in the columns' types
//	             │ in one of three modes, compiled once
//	     tests of one column   null? NaN? and an interval or a set of values
//	             │
//	  ┌──────────┼──────────────────────┐
//	Evaluate   MayMatch, MustMatch    Partition
//	(rows)     (column metrics)       (tuples, manifest summaries, residuals)
//
// The modes differ in what null, NaN and -0.0 satisfy, and only there. A
// compiled test says so explicitly: whether null rows match, whether NaN rows
// match, and which of all other values do. Rows, metrics and partitions are
// then judged by the same test, so pruning can never disagree with the row
// filter. Negation exists before compilation only: it is pushed down to the
// tests by the rules of the mode.
//
// # Modes
//
// Iceberg: null satisfies !=, not in and not starts with, and no other
// comparison. NaN satisfies !=, not in, > and >= against any literal. -0.0 is
// less than 0.0. not (x < 5) is x >= 5.
//
// PyIcebergScan: the rows that the row filter of a pyiceberg scan returns.
// Comparisons are those of IEEE 754 and of three-valued logic: null satisfies
// none of them and none of their negations, except that it is never in a set
// of two or more values, and so satisfies "not in". NaN satisfies !=, "not in"
// and nothing else. -0.0 equals 0.0, but in a set they differ.
//
// PyIcebergDelete: the rows that a pyiceberg delete removes; a row that matches
// is a row that goes. It keeps the rows for which the filter is false, and all
// rows in which a column that the filter compares is null or NaN, unless the
// filter tests that column with is-null or is-nan.
//
// # Wire form
//
// A filter crosses language boundaries as a JSON array of nodes, children
// before parents; the last node is the root. Nothing nests, so nothing recurses
// on either side. Every node but the root is the child of exactly one node.
//
//	[
//	  {"op": "eq", "ref": "address.city", "type": "string", "value": "Oslo"},
//	  {"op": "in", "ref": "id", "type": "long", "values": [1, 2, 3]},
//	  {"op": "is-null", "id": 7},
//	  {"op": "and", "args": [1, 2]},
//	  {"op": "or", "args": [0, 3]}
//	]
//
// The operations and the fields that each requires:
//
//	true, false                                     none
//	and, or                                         args: indices of nodes before this one, any number
//	not                                             args: one index
//	is-null, not-null, is-nan, not-nan              ref or id
//	eq, not-eq, lt, lt-eq, gt, gt-eq,
//	starts-with, not-starts-with                    ref or id, type, value
//	in, not-in                                      ref or id, and either type and values, or set
//
// ref is the full name of a column with dots between the levels of structs; id
// is its field id. set is the index of an Arrow array that is given beside the
// filter, for large sets of literals. "and" without args is true, "or" without
// args is false. Any other field, and a field given twice, is an error.
//
// type says how value (or each of values) is written. It need not be the
// column's type: Bind converts by Iceberg's rules.
//
//	boolean                          true or false
//	int, long                        integer (any size; what the column cannot hold is above or below all its values)
//	float, double                    number, or "NaN", "Infinity", "-Infinity"
//	decimal                          string, "12.50"; its scale is the number of digits after the point
//	date                             integer, days since 1970-01-01
//	time                             integer, microseconds since midnight
//	timestamp, timestamptz           integer, microseconds since 1970-01-01T00:00:00 (UTC)
//	timestamp_ns, timestamptz_ns     integer, nanoseconds since then
//	string                           string
//	uuid                             string, "f79c3e09-677c-4bbd-a479-3f349cb785e7"
//	fixed, binary                    string of hexadecimal digits, two for a byte
//
// NaN can be written but not compared with: binding such a filter is an error
// that points to is-nan, in every mode.
//
// Operations may nest 500 deep after "and" in "and", "or" in "or" and "not" in
// "not" are merged.
package expr
