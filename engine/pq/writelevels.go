package pq

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// shredder finds the levels of a leaf and the values that it has, for some
// rows of a batch. It goes down the leaf's path with one slot for each row,
// and lists turn a slot into one for each of their elements:
//
//	rows        [1 2]   null   []        slots at the list
//	elements    1  2    null   []        slots below it
//	repetition  0  1    0      0
//	definition  3  3    0      1
type shredder struct {
	leaf *leaf
	path []step

	// def and rep are the levels of the slots. def is nil when every slot has
	// a value, rep when the leaf is not below a list.
	def, rep []uint8
	// positions are those of the slots in the array at hand; -1: the slot has
	// ended above it.
	positions []int32

	spareDef, spareRep   []uint8
	spareAt, spareValues []int32
}

// run shreds the rows [from, to) of the leaf's column and returns the leaf's
// array and what it has of it.
func (s *shredder) run(column arrow.Array, from, to int) (arrow.Array, picked, error) {
	if len(s.path) == 1 {
		return s.flat(column, from, to)
	}
	n := to - from
	s.def, s.positions = resized(s.spareDef, n), resized(s.spareAt, n)
	clear(s.def)
	s.rep = nil
	if s.leaf.maxRep > 0 {
		s.rep = resized(s.spareRep, n)
		clear(s.rep)
	}
	for i := range s.positions {
		s.positions[i] = int32(from + i)
	}
	values := column
	for i := range s.path {
		at := &s.path[i]
		if i > 0 {
			values = child(values, at.child)
		}
		values = storageOf(values)
		if err := s.define(values, at); err != nil {
			return nil, picked{}, err
		}
		if at.kind == listNode || at.kind == mapNode {
			lists := values.(array.ListLike)
			if lists.ListValues().Len() > math.MaxInt32 {
				return nil, picked{}, errs.New(errs.InvalidArgument, "column %s has more than 2^31 elements in a batch; slice it", s.leaf.path)
			}
			s.expand(lists, at)
		}
	}
	s.spareDef, s.spareAt = s.def, s.positions
	if s.rep != nil {
		s.spareRep = s.rep
	}
	there := s.spareValues[:0]
	for _, at := range s.positions {
		if at >= 0 {
			there = append(there, at)
		}
	}
	s.spareValues = there
	if len(there) == len(s.positions) && s.leaf.maxRep == 0 {
		s.def = nil
	}
	if there == nil {
		there = []int32{}
	}
	return values, picked{positions: there}, nil
}

// child is a part of a nested array, with positions that count from the start
// of the array itself or, for a list, as its offsets do.
func child(values arrow.Array, i int) arrow.Array {
	switch v := values.(type) {
	case *array.Struct:
		return v.Field(i)
	case *array.Map:
		return v.ListValues().(*array.Struct).Field(i)
	}
	return values.(array.ListLike).ListValues()
}

// flat shreds a leaf that is a column of its own.
func (s *shredder) flat(column arrow.Array, from, to int) (arrow.Array, picked, error) {
	s.def, s.rep = nil, nil
	isNull := nulls(column)
	if isNull == nil {
		return column, picked{from: from, to: to}, nil
	}
	at := &s.path[0]
	s.spareDef, s.spareValues = resized(s.spareDef, to-from), s.spareValues[:0]
	for row := from; row < to; row++ {
		if isNull(row) {
			s.spareDef[row-from] = 0
		} else {
			s.spareDef[row-from] = at.def
			s.spareValues = append(s.spareValues, int32(row))
		}
	}
	if len(s.spareValues) == to-from {
		return column, picked{from: from, to: to}, nil
	}
	if !at.nullable {
		return nil, picked{}, s.missing()
	}
	s.def = s.spareDef
	positions := s.spareValues
	if positions == nil {
		positions = []int32{}
	}
	return column, picked{positions: positions}, nil
}

func (s *shredder) missing() error {
	return errs.New(errs.InvalidArgument, "column %s is required and has a null", s.leaf.path)
}

// nulls tells which values of an array are null; nil: none. A dictionary
// array's nulls may be in its dictionary.
func nulls(values arrow.Array) func(i int) bool {
	values = storageOf(values)
	if d, ok := values.(*array.Dictionary); ok && d.Dictionary().NullN() > 0 {
		return func(i int) bool { return d.IsNull(i) || d.Dictionary().IsNull(d.GetValueIndex(i)) }
	}
	if values.NullN() == 0 {
		return nil
	}
	return values.IsNull
}

// define ends the slots that are null in an array and raises the definition
// level of the others.
func (s *shredder) define(values arrow.Array, at *step) error {
	isNull := nulls(values)
	for i, position := range s.positions {
		switch {
		case position < 0:
		case isNull != nil && isNull(int(position)):
			if !at.nullable {
				return s.missing()
			}
			s.positions[i] = -1
		default:
			s.def[i] = at.def
		}
	}
	return nil
}

// expand makes a slot for each element of the slots' lists.
func (s *shredder) expand(lists array.ListLike, at *step) {
	n := 0
	for _, position := range s.positions {
		n++
		if position >= 0 {
			start, end := lists.ValueOffsets(int(position))
			n += max(int(end-start), 1) - 1
		}
	}
	def, rep, positions := make([]uint8, 0, n), make([]uint8, 0, n), make([]int32, 0, n)
	for i, position := range s.positions {
		start, end := int64(-1), int64(-1)
		if position >= 0 {
			start, end = lists.ValueOffsets(int(position))
		}
		if start == end { // ended above, or empty: def says which
			def, rep, positions = append(def, s.def[i]), append(rep, s.rep[i]), append(positions, -1)
			continue
		}
		level := s.rep[i]
		for element := start; element < end; element++ {
			def, rep, positions = append(def, at.def+1), append(rep, level), append(positions, int32(element))
			level = at.rep
		}
	}
	s.def, s.rep, s.positions = def, rep, positions
}

func (s *shredder) held() int {
	return cap(s.spareDef) + cap(s.spareRep) + 4*cap(s.spareAt) + 4*cap(s.spareValues)
}
