package install

import (
	_ "embed"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

//go:embed plugins.tsv
var plugins string

type Wheel struct {
	Kind     string
	Platform string // GOOS/GOARCH
	Package  string
	Version  string
	File     string
	Size     int64  // bytes
	SHA256   string // lower-case hex
	// Members are path.Match patterns of needed files; each must match.
	Members []string
	// Library is the member to load, with digest and PJRT API version, if any. All are "" for wheels of dependencies.
	Library, LibrarySHA256, API string
	Licence                     string
}

func Table() ([]Wheel, error) { return parseTable(plugins) }

func Kinds() []string {
	table, _ := Table()
	return slices.DeleteFunc(kinds(table), func(kind string) bool {
		return !slices.ContainsFunc(table, func(w Wheel) bool { return w.Kind == kind && w.API != "" })
	})
}

const (
	MPI   = "mpi"
	MPICH = "mpich"
)

func kinds(table []Wheel) []string {
	var names []string
	for _, w := range table {
		if !slices.Contains(names, w.Kind) {
			names = append(names, w.Kind)
		}
	}
	return names
}

// A row has twelve tab-separated fields; "-" is empty.
func parseTable(text string) ([]Wheel, error) {
	var table []Wheel
	for i, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 12 {
			return nil, fmt.Errorf("plugins.tsv line %d: %d fields, want 12", i+1, len(f))
		}
		for j := range f {
			if f[j] == "-" {
				f[j] = ""
			}
		}
		size, err := strconv.ParseInt(f[5], 10, 64)
		if err != nil || size <= 0 {
			return nil, fmt.Errorf("plugins.tsv line %d: size %q is not a number of bytes", i+1, f[5])
		}
		w := Wheel{
			Kind: f[0], Platform: f[1], Package: f[2], Version: f[3], File: f[4], Size: size, SHA256: f[6],
			Members: strings.Split(f[7], ","), Library: f[8], LibrarySHA256: f[9], API: f[10], Licence: f[11],
		}
		if err := w.check(); err != nil {
			return nil, fmt.Errorf("plugins.tsv line %d: %w", i+1, err)
		}
		table = append(table, w)
	}
	return table, nil
}

func (w Wheel) check() error {
	if !isDigest(w.SHA256) || w.LibrarySHA256 != "" && !isDigest(w.LibrarySHA256) {
		return fmt.Errorf("%s: a digest is not 64 lower-case hex digits", w.File)
	}
	if w.File != path.Base(w.File) || !strings.HasSuffix(w.File, ".whl") {
		return fmt.Errorf("%q is not the file name of a wheel", w.File)
	}
	if (w.Library == "") != (w.LibrarySHA256 == "") {
		return fmt.Errorf("%s: library and its digest go together", w.File)
	}
	for _, pattern := range w.Members {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return fmt.Errorf("%s: malformed pattern %q", w.File, pattern)
		}
	}
	return nil
}

func isDigest(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

func (o Options) wheels() ([]Wheel, error) {
	if o.table != nil {
		return o.table, nil
	}
	return Table()
}

func wheelsFor(kind string, table []Wheel) ([]Wheel, error) {
	if !slices.Contains(kinds(table), kind) {
		return nil, fmt.Errorf("%w %q: the known ones are %s", ErrUnknownKind, kind, strings.Join(kinds(table), ", "))
	}
	var rows []Wheel
	var others []string
	for _, w := range table {
		switch {
		case w.Kind == kind && w.Platform == platform():
			rows = append(rows, w)
		case w.Kind == kind && !slices.Contains(others, w.Platform):
			others = append(others, w.Platform)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%w: %s, there are wheels for %s: install a library that you have with --from FILE --sha256 DIGEST, or run without a plugin (-plugin go)",
			ErrNoWheel, platform(), strings.Join(others, ", "))
	}
	return rows, nil
}
