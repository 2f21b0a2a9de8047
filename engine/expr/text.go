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

// write says which values match, and of null and NaN what that does not imply:
// "x != 1" reads as if null and NaN matched, "x >= 1" as if NaN did.
func (t *test) write(w *strings.Builder) {
	name, v := t.col.name, t.values
	float := t.col.kind == kindFloat
	impliesNull := v.inverted && !v.none() && !v.all()
	impliesNaN := float && !v.none() && (v.inverted || v.all() || v.set == nil && v.in.hasLo && !v.in.hasHi)
	var parts []string
	switch {
	case v.none():
	case v.all() && t.null && !t.nan:
		parts, impliesNull, impliesNaN = append(parts, name+" is not nan"), true, false
	default:
		s := name + " is not null"
		if !v.all() {
			s = v.text(name, t.col.typ)
		}
		if impliesNull && !t.null {
			s += " and " + name + " is not null"
		}
		if impliesNaN && !t.nan {
			s += " and " + name + " is not nan"
		}
		parts = append(parts, s)
	}
	if t.null && !impliesNull {
		parts = append(parts, name+" is null")
	}
	if float && t.nan && !impliesNaN {
		parts = append(parts, name+" is nan")
	}
	if t.absent && !t.null {
		parts = append(parts, name+" is absent")
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
