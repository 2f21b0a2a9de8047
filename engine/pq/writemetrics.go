package pq

import (
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
)

// MetricsMode says what is gathered of a column. The zero value is the default
// of Iceberg tables, truncate(16).
type MetricsMode struct {
	Kind MetricsKind
	// Length is what a truncated bound keeps: of a string so many code points,
	// of a binary so many bytes; zero: 16.
	Length int
}

// MetricsKind is the kind of a MetricsMode.
type MetricsKind int8

// Kinds of metrics modes: counts and truncated bounds, nothing but the
// column's size, counts without bounds, counts and whole bounds.
const (
	MetricsTruncate MetricsKind = iota
	MetricsNone
	MetricsCounts
	MetricsFull
)

const defaultBoundLength = 16

// MetricsConfig gives each column its metrics mode.
type MetricsConfig struct {
	Default MetricsMode
	// Columns holds by field id the columns that differ from Default.
	Columns map[int]MetricsMode
}

// Mode is the mode of a column.
func (c *MetricsConfig) Mode(fieldID int) MetricsMode {
	if mode, ok := c.Columns[fieldID]; ok {
		return mode
	}
	return c.Default
}

// metrics reads the metrics properties. Without a default of the table's own
// only the first hundred columns have metrics, so that wide tables keep small
// manifests.
func (p *propertyParser) metrics(schema *iceberg.Schema) MetricsConfig {
	config := MetricsConfig{Columns: map[int]MetricsMode{}}
	const defaultKey, inferredKey = metricsPrefix + "default", metricsPrefix + "max-inferred-column-defaults"
	if _, ok := p.properties[defaultKey]; ok {
		config.Default = p.metricsMode(defaultKey)
	} else {
		most := 100
		if text, ok := p.properties[inferredKey]; ok {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				p.bad(inferredKey, "a number that is not negative")
			}
			most = n
		}
		for i, id := range primitiveIDs(schema) {
			if i >= most {
				config.Columns[id] = MetricsMode{Kind: MetricsNone}
			}
		}
	}
	for id, key := range p.columns(metricsColumn, schema) {
		config.Columns[id] = p.metricsMode(key)
	}
	return config
}

func (p *propertyParser) metricsMode(key string) MetricsMode {
	text := strings.ToLower(strings.TrimSpace(p.properties[key]))
	switch text {
	case "none":
		return MetricsMode{Kind: MetricsNone}
	case "counts":
		return MetricsMode{Kind: MetricsCounts}
	case "full":
		return MetricsMode{Kind: MetricsFull}
	}
	if inner, ok := strings.CutPrefix(text, "truncate("); ok {
		if inner, ok = strings.CutSuffix(inner, ")"); ok {
			if n, err := strconv.Atoi(strings.TrimSpace(inner)); err == nil && n > 0 {
				return MetricsMode{Kind: MetricsTruncate, Length: n}
			}
		}
	}
	p.bad(key, "none, counts, truncate(a length above 0) or full")
	return MetricsMode{}
}

// primitiveIDs are the ids of the primitive fields, in the schema's order.
func primitiveIDs(schema *iceberg.Schema) []int {
	var ids []int
	var visit func(fields []iceberg.NestedField)
	visit = func(fields []iceberg.NestedField) {
		for _, f := range fields {
			if nested, ok := f.Type.(iceberg.NestedType); ok {
				visit(nested.Fields())
			} else {
				ids = append(ids, f.ID)
			}
		}
	}
	visit(schema.Fields())
	return ids
}

// leafMetrics sum up a leaf over the row groups of a file.
type leafMetrics struct {
	size, slots, nulls, nans  int64
	nullsUnknown, nansUnknown bool // of some copied row group
	bounds                    bounds
}

func (g *leafMetrics) add(c *columnWriter, done *finishedChunk) {
	g.size += done.compressed
	g.slots += c.chunk.slots
	g.nulls += c.chunk.slots - c.chunk.values
	g.nans += c.encoder.nans()
	g.bounds.merge(c.leaf, c.chunk.bounds)
}

// written describes the finished file. A leaf below a list or map has counts
// and no bounds, which would be those of no row.
func (w *Writer) written() *Written {
	d := &Written{
		Records: w.Rows(), Size: w.file.offset,
		ColumnSizes: map[int]int64{}, ValueCounts: map[int]int64{}, NullCounts: map[int]int64{}, NaNCounts: map[int]int64{},
		LowerBounds: map[int][]byte{}, UpperBounds: map[int][]byte{},
	}
	for _, g := range w.file.groups {
		d.SplitOffsets = append(d.SplitOffsets, g.offset)
	}
	for i, l := range w.tree.leaves {
		g, id := &w.gathered[i], int(l.fieldID)
		d.ColumnSizes[id] = g.size
		mode := w.options.Metrics.Mode(id)
		if mode.Kind == MetricsNone {
			continue
		}
		d.ValueCounts[id] = g.slots
		if !g.nullsUnknown {
			d.NullCounts[id] = g.nulls
		}
		if (l.physical == physFloat || l.physical == physDouble) && !g.nansUnknown {
			d.NaNCounts[id] = g.nans
		}
		if mode.Kind == MetricsCounts || l.maxRep > 0 {
			continue
		}
		lower, upper := g.bounds.min, g.bounds.max
		if mode.Kind == MetricsTruncate {
			lower, upper = l.truncateBounds(g.bounds, mode.length())
		}
		if lower != nil {
			d.LowerBounds[id] = l.icebergBound(lower)
		}
		if upper != nil {
			d.UpperBounds[id] = l.icebergBound(upper)
		}
	}
	return d
}

func (m MetricsMode) length() int {
	if m.Length > 0 {
		return m.Length
	}
	return defaultBoundLength
}
