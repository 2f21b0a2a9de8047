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
