package flaxlike

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/edits"
)

// ErrUnknownName is wrapped by the error about a loss, metric, optimizer, activation or output that does not exist.
var ErrUnknownName = errors.New("unknown name")

// find looks a name up. The error says which name was probably meant.
func find[T any](kind, name string, table map[string]T) (found T, err error) {
	if found, ok := table[name]; ok {
		return found, nil
	}
	names := slices.Sorted(maps.Keys(table))
	hint := ""
	if near := nearest(name, names); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return found, fmt.Errorf("%s %q: %w%s\n  known: %s", kind, name, ErrUnknownName, hint, strings.Join(names, ", "))
}

// nearest is the name with the fewest changes, if these are few; else one that holds the other.
func nearest(name string, names []string) string {
	best, plain := edits.Nearest(name, names), strings.ToLower(name)
	if best != "" || len(plain) < 3 {
		return best
	}
	for _, n := range names {
		if strings.Contains(n, plain) || strings.Contains(plain, n) {
			return n
		}
	}
	return ""
}
