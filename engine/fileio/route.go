package fileio

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/icebergexec/icebergexec/engine/errs"
)

// NewMux gives each location to the FS of its scheme; the key "" stands for
// plain paths. A scheme without an FS goes to fallback, or is Unsupported when
// fallback is nil.
func NewMux(byScheme map[string]FS, fallback FS) FS {
	return &mux{byScheme: maps.Clone(byScheme), fallback: fallback}
}

type mux struct {
	byScheme map[string]FS
	fallback FS
}

func (m *mux) route(op, location string) (FS, error) {
	scheme := Scheme(location)
	if fs, ok := m.byScheme[scheme]; ok {
		return fs, nil
	}
	if m.fallback != nil {
		return m.fallback, nil
	}
	return nil, errs.Wrap(unsupportedScheme(scheme, slices.Collect(maps.Keys(m.byScheme))), op, location)
}

// unsupportedScheme says what can be done about a location that no FS opens.
func unsupportedScheme(scheme string, known []string) error {
	kind := "locations of scheme " + scheme
	if scheme == "" {
		kind = "plain paths"
	}
	local := true
	names := make([]string, len(known))
	for i, k := range known {
		if names[i] = k + ":"; k == "" {
			names[i] = "plain paths"
		}
		local = local && (k == "" || k == "file")
	}
	if local {
		return errs.New(errs.Unsupported, "%s cannot be opened: this engine opens local files only (plain paths and file: locations); "+
			"copy or mount the table on this machine and name the place in path_prefixes", kind)
	}
	slices.Sort(names)
	return errs.New(errs.Unsupported, "%s cannot be opened; this engine opens %s", kind, strings.Join(names, ", "))
}

func (m *mux) Open(ctx context.Context, location string) (File, error) {
	fs, err := m.route("open", location)
	if err != nil {
		return nil, err
	}
	return fs.Open(ctx, location)
}

func (m *mux) Create(ctx context.Context, location string) (Writer, error) {
	fs, err := m.route("create", location)
	if err != nil {
		return nil, err
	}
	return fs.Create(ctx, location)
}

func (m *mux) Remove(ctx context.Context, location string) error {
	fs, err := m.route("remove", location)
	if err != nil {
		return err
	}
	return fs.Remove(ctx, location)
}

// WithPrefixes opens locations elsewhere than metadata says, for tables that
// were moved: the longest key that is a prefix of the location, ending at a
// slash, is replaced by its value. The spellings of a local path (file:/x,
// file:///x, /x) are one and the same key.
func WithPrefixes(fs FS, prefixes map[string]string) FS {
	if len(prefixes) == 0 {
		return fs
	}
	moved := &prefixed{fs: fs}
	for from, to := range prefixes {
		moved.moves = append(moved.moves, move{from: strings.TrimSuffix(plainLocal(from), "/"), to: strings.TrimSuffix(to, "/")})
	}
	slices.SortFunc(moved.moves, func(a, b move) int {
		if len(a.from) != len(b.from) {
			return len(b.from) - len(a.from)
		}
		return strings.Compare(a.from, b.from)
	})
	return moved
}

type move struct{ from, to string }

type prefixed struct {
	fs    FS
	moves []move // longest first
}

// plainLocal turns a file: URI into the path it names.
func plainLocal(location string) string {
	if Scheme(location) == "file" {
		if path, ok := filePath(location); ok {
			return path
		}
	}
	return location
}

func (p *prefixed) moved(location string) string {
	plain := plainLocal(location)
	for _, m := range p.moves {
		if rest, ok := strings.CutPrefix(plain, m.from); ok && (rest == "" || rest[0] == '/') {
			return m.to + rest
		}
	}
	return location
}

func (p *prefixed) Open(ctx context.Context, location string) (File, error) {
	return p.fs.Open(ctx, p.moved(location))
}

func (p *prefixed) Create(ctx context.Context, location string) (Writer, error) {
	return p.fs.Create(ctx, p.moved(location))
}

func (p *prefixed) Remove(ctx context.Context, location string) error {
	return p.fs.Remove(ctx, p.moved(location))
}
