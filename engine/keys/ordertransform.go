package keys

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/apache/iceberg-go"
	"github.com/twmb/murmur3"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// setTransform chooses how values become what is ordered by.
func (c *orderColumn) setTransform() error {
	c.setIdentity()
	switch t := c.Transform.(type) {
	case iceberg.IdentityTransform:
	case iceberg.VoidTransform:
		c.void = true
	case iceberg.BucketTransform:
		c.setBucket(t.NumBuckets)
	case iceberg.TruncateTransform:
		c.setTruncate(t.Width)
	case iceberg.YearTransform:
		c.setPeriod(func(days int64) int64 { year, _ := civil(days); return year - 1970 })
	case iceberg.MonthTransform:
		c.setPeriod(func(days int64) int64 { year, month := civil(days); return (year-1970)*12 + month - 1 })
	case iceberg.DayTransform:
		c.setPeriod(func(days int64) int64 { return days })
	case iceberg.HourTransform:
		unit := c.day() / 24
		c.width, c.word = 4, func(w uint64) uint64 { return flipSign32(uint64(floorDivide(int64(w), unit))) }
	default:
		return errs.New(errs.Unsupported, "column %q cannot be sorted by the transform %s", c.Name, c.Transform)
	}
	return nil
}

// day is the length of a day in the unit of the source.
func (c *orderColumn) day() int64 {
	switch c.source.(type) {
	case iceberg.DateType:
		return 1
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return 86_400_000_000_000
	}
	return 86_400_000_000
}

func (c *orderColumn) setPeriod(period func(days int64) int64) {
	day := c.day()
	c.width, c.word = 4, func(w uint64) uint64 { return flipSign32(uint64(period(floorDivide(int64(w), day)))) }
}

// civil is the year and month of a day since 1970-01-01 in the proleptic
// Gregorian calendar. Years start in March here, so that the leap day is last.
func civil(days int64) (year, month int64) {
	days += 719_468 // from 0000-03-01
	era := floorDivide(days, 146_097)
	ofEra := days - era*146_097
	yearOfEra := (ofEra - ofEra/1460 + ofEra/36_524 - ofEra/146_096) / 365
	dayOfYear := ofEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	month = (5*dayOfYear+2)/153 + 3
	year = yearOfEra + era*400
	if month > 12 {
		return year + 1, month - 12
	}
	return year, month
}

// setBucket orders by the bucket's number.
func (c *orderColumn) setBucket(n int) {
	bucket := func(hash uint32) uint64 { return flipSign32(uint64(hash&0x7fffffff) % uint64(n)) }
	c.width = 4
	switch c.source.(type) {
	case iceberg.StringType, iceberg.BinaryType, iceberg.FixedType:
		c.textWord = func(s string) uint64 { return bucket(murmur3.StringSum32(s)) }
	case iceberg.UUIDType:
		c.pairWord = func(first, second uint64) uint64 {
			var b [16]byte
			binary.LittleEndian.PutUint64(b[:], first)
			binary.LittleEndian.PutUint64(b[8:], second)
			return bucket(murmur3.Sum32(b[:]))
		}
	case iceberg.DecimalType:
		if c.form == twoWords {
			c.pairWord = func(low, high uint64) uint64 { return bucket(hashDecimal(low, high)) }
			return
		}
		c.word = func(w uint64) uint64 { return bucket(hashDecimal(w, uint64(int64(w)>>63))) }
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		c.word = func(w uint64) uint64 { return bucket(hashLong(uint64(floorDivide(int64(w), 1000)))) }
	default:
		c.word = func(w uint64) uint64 { return bucket(hashLong(w)) }
	}
}

// hashLong is the 32-bit Murmur3 hash of eight bytes.
func hashLong(w uint64) uint32 {
	hash := uint32(0)
	for _, k := range [2]uint32{uint32(w), uint32(w >> 32)} {
		hash ^= bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593
		hash = bits.RotateLeft32(hash, 13)*5 + 0xe6546b64
	}
	hash ^= 8
	hash = (hash ^ hash>>16) * 0x85ebca6b
	hash = (hash ^ hash>>13) * 0xc2b2ae35
	return hash ^ hash>>16
}

// hashDecimal hashes the shortest two's complement form of an unscaled value.
func hashDecimal(low, high uint64) uint32 {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], high)
	binary.BigEndian.PutUint64(b[8:], low)
	sign := byte(int64(high) >> 63)
	start := 0
	for start < 15 && b[start] == sign && b[start+1]>>7 == sign>>7 {
		start++
	}
	return murmur3.Sum32(b[start:])
}

// setTruncate orders by the value cut off: numbers to a multiple of width,
// strings to that many characters, binary to bytes.
func (c *orderColumn) setTruncate(width int) {
	order, orderPair := c.word, c.pair
	switch {
	case c.form == oneWord:
		c.word = func(w uint64) uint64 {
			v, by := int64(w), int64(width)
			return order(uint64(v - (v%by+by)%by))
		}
	case c.form == twoWords:
		c.pair = func(low, high uint64) (uint64, uint64) { return orderPair(truncateLong(low, high, uint64(width))) }
	case c.source == iceberg.Type(iceberg.StringType{}):
		c.text = func(s string) string { return firstCharacters(s, width) }
	default:
		c.text = func(s string) string { return s[:min(len(s), width)] }
	}
}

// truncateLong takes a signed 128-bit value down to a multiple of width.
func truncateLong(low, high, width uint64) (uint64, uint64) {
	magnitudeLow, magnitudeHigh, negative := low, high, high&signBit != 0
	if negative {
		var borrow uint64
		magnitudeLow, borrow = bits.Sub64(0, low, 0)
		magnitudeHigh, _ = bits.Sub64(0, high, borrow)
	}
	_, rest := bits.Div64(magnitudeHigh%width, magnitudeLow, width)
	if negative && rest != 0 {
		rest = width - rest
	}
	low, borrow := bits.Sub64(low, rest, 0)
	return low, high - borrow
}

// firstCharacters cuts a string off after n code points.
func firstCharacters(s string, n int) string {
	if len(s) <= n {
		return s
	}
	at := 0
	for ; n > 0 && at < len(s); n-- {
		if s[at] < utf8.RuneSelf {
			at++
			continue
		}
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return s[:at]
}
