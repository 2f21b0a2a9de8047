package expr

import (
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
)

// maxText is about how long String may become.
const maxText = 4 << 10

// String renders the expression as it is evaluated in Iceberg mode, or in the
// one mode that it is for. Long ones are cut.
func (b *Bound) String() string {
	var w strings.Builder
	mode := Iceberg
	if b != nil {
		mode = b.written
	}
	b.rule(mode).write(&w)
	return w.String()
}

func (r *rule) write(w *strings.Builder) {
	switch r.op {
	case OpTrue, OpFalse:
		w.WriteString(r.op.String())
	case opTest:
		r.test.write(w)
	case opTuple:
		r.tuple.write(w)
	default:
		for i, a := range r.args {
			if i > 0 {
				w.WriteString(" " + r.op.String() + " ")
			}
			if w.Len() > maxText {
				w.WriteString("(" + strconv.Itoa(len(r.args)-i) + " more)")
				return
			}
			if a.op == OpAnd || a.op == OpOr {
				w.WriteByte('(')
				a.write(w)
				w.WriteByte(')')
			} else {
				a.write(w)
			}
		}
	}
}

func (t *test) write(w *strings.Builder) {
	name, v := t.col.name, t.values
	natural := v.inverted // whether null matches in the usual meaning of what is written
	var parts []string
	switch {
	case v.none():
		natural = false
	case v.all():
		natural = false
		if !t.null {
			parts = append(parts, name+" is not null")
		} else {
			parts = append(parts, "true")
		}
	default:
		parts = append(parts, v.text(name, t.col.typ))
	}
	if t.null && !natural && !v.all() {
		parts = append(parts, name+" is null")
	}
	if !t.null && natural {
		parts[0] += " and " + name + " is not null"
	}
	if t.col.kind == kindFloat {
		switch {
		case t.nan && v.none():
			parts = append(parts, name+" is nan")
		case !t.nan && (v.all() || v.inverted || v.in.hasLo && !v.in.hasHi):
			parts[0] += " and " + name + " is not nan"
		}
	}
	if len(parts) > 1 {
		w.WriteByte('(')
		defer w.WriteByte(')')
	}
	w.WriteString(strings.Join(parts, " or "))
}

func (v values) text(name string, typ iceberg.Type) string {
	operator := func(plain, inverted string) string {
		if v.inverted {
			return " " + inverted + " "
		}
		return " " + plain + " "
	}
	switch {
	case v.set != nil:
		var w strings.Builder
		w.WriteString(name + operator("in", "not in") + "(")
		for i := range v.set.len() {
			if i > 0 {
				w.WriteString(", ")
			}
			if w.Len() > maxText/16 {
				w.WriteString("(" + strconv.Itoa(v.set.len()-i) + " more)")
				break
			}
			w.WriteString(text(typ, v.set.at(i)))
		}
		return w.String() + ")"
	case v.in.point(v.kind):
		return name + operator("=", "!=") + text(typ, v.in.lo)
	}
	bounds, less := name, " <= "
	if v.in.hiOpen {
		less = " < "
	}
	switch {
	case !v.in.hasHi:
		bounds += " >= " + text(typ, v.in.lo)
	case !v.in.hasLo:
		bounds += less + text(typ, v.in.hi)
	default:
		bounds = text(typ, v.in.lo) + " <= " + name + less + text(typ, v.in.hi)
	}
	if v.inverted {
		return "not " + bounds
	}
	return bounds
}

func (t *tupleTest) write(w *strings.Builder) {
	w.WriteByte('(')
	for i, c := range t.columns {
		if i > 0 {
			w.WriteString(", ")
		}
		w.WriteString(c.name)
	}
	w.WriteString(") in " + strconv.Itoa(len(t.keys)) + " combinations")
}
