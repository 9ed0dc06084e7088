// Package names looks names up and suggests the nearest in errors.
package names

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/edits"
	"github.com/lazo-ml/lazo/internal/listed"
)

var ErrUnknown = errors.New("unknown name")

func Find[T any](kind, name string, table map[string]T) (found T, err error) {
	if found, ok := table[name]; ok {
		return found, nil
	}
	known := slices.Sorted(maps.Keys(table))
	hint := ""
	if near := Nearest(name, known); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", listed.Quoted(near))
	}
	return found, fmt.Errorf("%s %s: %w%s\n  known: %s", kind, listed.Quoted(name), ErrUnknown, hint, listed.Joined(known))
}

// Nearest returns the shortest name with all words of name, or else the one with the fewest edits if they are few, or
// else one that contains name.
func Nearest(name string, names []string) string {
	if words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || r == '-' || r == ' ' }); len(words) > 1 {
		whole := slices.DeleteFunc(slices.Clone(names), func(n string) bool {
			of := strings.Split(n, "_")
			return slices.ContainsFunc(words, func(word string) bool { return !slices.Contains(of, word) })
		})
		if len(whole) > 0 {
			return slices.MinFunc(whole, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
		}
	}
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
