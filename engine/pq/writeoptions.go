package pq

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/iceberg-go"

	"github.com/icebergexec/icebergexec/engine/errs"
	"github.com/icebergexec/icebergexec/engine/mem"
)

// Compression is a codec with its level.
type Compression struct {
	Codec Codec
	// Level is the codec's own; zero: its default.
	Level int
}

// Codec is a compression codec that files are written with. The zero value is
// the default of Iceberg tables, zstd.
type Codec int8

// Codecs.
const (
	Zstd Codec = iota
	Uncompressed
	Snappy
	Gzip
	Brotli
	LZ4
)

// codecInfo describes a codec: its names in table properties, its number in
// Parquet and its levels (none: min equals max).
type codecInfo struct {
	names    []string
	id       compress.Compression
	min, max int
}

var codecs = []codecInfo{
	Zstd:         {[]string{"zstd"}, compress.Codecs.Zstd, 1, 22},
	Uncompressed: {[]string{"uncompressed", "none"}, compress.Codecs.Uncompressed, 0, 0},
	Snappy:       {[]string{"snappy"}, compress.Codecs.Snappy, 0, 0},
	Gzip:         {[]string{"gzip"}, compress.Codecs.Gzip, 1, 9},
	Brotli:       {[]string{"brotli"}, compress.Codecs.Brotli, 1, 11},
	// Of the two LZ4 codecs of Parquet the one that is not deprecated.
	LZ4: {[]string{"lz4", "lz4_raw"}, compress.Codecs.Lz4Raw, 0, 0},
}

func (c Codec) String() string { return codecs[c].names[0] }

// BloomOptions describes the Bloom filters of a column.
type BloomOptions struct {
	// FalsePositives is the rate of false positives to aim at; zero: 0.01.
	FalsePositives float64
	// MaxBytes bounds the filter of a column chunk; zero: 1 MiB.
	MaxBytes int
}

const (
	defaultRowGroupBytes   = 128 << 20 // 128 MiB
	defaultRowGroupRows    = 1 << 20
	defaultPageBytes       = 1 << 20 // 1 MiB
	defaultPageRows        = 20_000
	defaultDictionaryBytes = 2 << 20 // 2 MiB
	defaultBloomBytes      = 1 << 20 // 1 MiB
	defaultFalsePositives  = 0.01
	// maxPageBytes keeps the sizes of pages, which are 32-bit numbers with a
	// sign, out of danger whatever a codec adds.
	maxPageBytes = 1 << 30 // 1 GiB
)

const (
	parquetPrefix = "write.parquet."
	bloomEnabled  = parquetPrefix + "bloom-filter-enabled.column."
	bloomRate     = parquetPrefix + "bloom-filter-fpp.column."
	metricsPrefix = "write.metadata.metrics."
	metricsColumn = metricsPrefix + "column."
)

// ParseWriterOptions reads the write.parquet.* and write.metadata.metrics.*
// properties of a table with the given schema. A property of a column that the
// schema does not have is passed over: the column may have been dropped.
func ParseWriterOptions(properties map[string]string, schema *iceberg.Schema) (WriterOptions, error) {
	p := propertyParser{properties: properties}
	o := WriterOptions{
		Compression:     p.compression(),
		RowGroupBytes:   p.size("row-group-size-bytes", defaultRowGroupBytes, 1<<62),
		RowGroupRows:    p.size("row-group-limit", defaultRowGroupRows, 1<<31-1),
		PageBytes:       int(p.size("page-size-bytes", defaultPageBytes, maxPageBytes)),
		PageRows:        int(p.size("page-row-limit", defaultPageRows, 1<<31-1)),
		DictionaryBytes: int(p.size("dict-size-bytes", defaultDictionaryBytes, maxPageBytes)),
		PageVersion:     p.pageVersion(),
		BloomFilters:    p.bloomFilters(schema),
		Metrics:         p.metrics(schema),
	}
	return o, p.err
}

func (o WriterOptions) withDefaults() WriterOptions {
	if o.Alloc == nil {
		o.Alloc = memory.DefaultAllocator
	}
	if o.Pool == nil {
		o.Pool = mem.NewPool("parquet", mem.Unlimited)
	}
	setDefault(&o.RowGroupBytes, defaultRowGroupBytes)
	setDefault(&o.RowGroupRows, defaultRowGroupRows)
	setDefault(&o.PageBytes, defaultPageBytes)
	setDefault(&o.PageRows, defaultPageRows)
	setDefault(&o.DictionaryBytes, defaultDictionaryBytes)
	setDefault(&o.PageVersion, 1)
	o.PageBytes = min(o.PageBytes, maxPageBytes)
	o.DictionaryBytes = min(o.DictionaryBytes, maxPageBytes)
	return o
}

func setDefault[T int | int64 | float64](v *T, to T) {
	if *v <= 0 {
		*v = to
	}
}

// propertyParser keeps the first error.
type propertyParser struct {
	properties map[string]string
	err        error
}

func (p *propertyParser) bad(key, allowed string) {
	if p.err == nil {
		p.err = errs.New(errs.InvalidArgument, "table property %s is %q: expected %s", key, p.properties[key], allowed)
	}
}

func (p *propertyParser) size(name string, otherwise, most int64) int64 {
	key := parquetPrefix + name
	text, ok := p.properties[key]
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > most {
		p.bad(key, fmt.Sprintf("a number from 1 to %d", most))
		return otherwise
	}
	return n
}

func (p *propertyParser) pageVersion() int {
	key := parquetPrefix + "page-version"
	switch p.properties[key] {
	case "", "v1":
		return 1
	case "v2":
		return 2
	}
	p.bad(key, "v1 or v2")
	return 1
}

func (p *propertyParser) compression() Compression {
	const codecKey, levelKey = parquetPrefix + "compression-codec", parquetPrefix + "compression-level"
	var c Compression
	if text, ok := p.properties[codecKey]; ok {
		i := slices.IndexFunc(codecs, func(c codecInfo) bool { return slices.Contains(c.names, strings.ToLower(text)) })
		if i < 0 {
			var all []string
			for _, c := range codecs {
				all = append(all, c.names...)
			}
			p.bad(codecKey, "one of "+strings.Join(all, ", "))
			return c
		}
		c.Codec = Codec(i)
	}
	// pyiceberg writes the absence of a level as an empty or null value.
	text := p.properties[levelKey]
	if text == "" || text == "null" || text == "None" {
		return c
	}
	level, err := strconv.Atoi(text)
	if err != nil {
		p.bad(levelKey, "a number")
		return c
	}
	// A codec without levels leaves the level to be ignored, as every writer does.
	if info := codecs[c.Codec]; info.min < info.max {
		if level < info.min || level > info.max {
			p.bad(levelKey, fmt.Sprintf("a number from %d to %d for %s", info.min, info.max, c.Codec))
			return c
		}
		c.Level = level
	}
	return c
}

func (p *propertyParser) bloomFilters(schema *iceberg.Schema) map[int]BloomOptions {
	const maxKey = "bloom-filter-max-bytes"
	most := int(p.size(maxKey, defaultBloomBytes, maxBloomFilter))
	var filters map[int]BloomOptions
	for field, key := range p.columns(bloomEnabled, schema) {
		switch strings.ToLower(p.properties[key]) {
		case "true":
		case "false":
			continue
		default:
			p.bad(key, "true or false")
			continue
		}
		b := BloomOptions{MaxBytes: most}
		rateKey := bloomRate + strings.TrimPrefix(key, bloomEnabled)
		if text, ok := p.properties[rateKey]; ok {
			rate, err := strconv.ParseFloat(text, 64)
			if err != nil || !(rate > 0 && rate < 1) {
				p.bad(rateKey, "a number between 0 and 1")
			}
			b.FalsePositives = rate
		}
		if filters == nil {
			filters = map[int]BloomOptions{}
		}
		filters[field] = b
	}
	return filters
}

// columns finds the columns that properties with a prefix name: the property's
// key by field id.
func (p *propertyParser) columns(prefix string, schema *iceberg.Schema) map[int]string {
	found := map[int]string{}
	for _, key := range slices.Sorted(maps.Keys(p.properties)) {
		if name, ok := strings.CutPrefix(key, prefix); ok {
			if field, ok := schema.FindFieldByName(name); ok {
				found[field.ID] = key
			}
		}
	}
	return found
}
