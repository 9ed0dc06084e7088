// Package lookup finds a logged entry by its name or full name, collection.name.
package lookup

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lazo-ml/lazo/internal/edits"
	"github.com/lazo-ml/lazo/internal/records"
)

var ErrNoEntry = errors.New("no such entry")

// Find returns the index of the entry with a full name or else with a name; key returns an entry's collection and
// name.
func Find[E any](entries []E, key func(*E) (collection, name string), name string) (int, error) {
	matches := IsPath
	at, n := match(entries, key, matches, name)
	if n == 0 {
		matches = isName
		at, n = match(entries, key, matches, name)
	}
	switch {
	case n == 1:
		return at, nil
	case n > 1:
		var candidates []E
		for i := range entries {
			if c, e := key(&entries[i]); matches(c, e, name) {
				candidates = append(candidates, entries[i])
			}
		}
		return -1, fmt.Errorf("ambiguous name: %q; use one of: %s", name, paths(candidates, key))
	}
	if collection, rest, dotted := strings.Cut(name, "."); name == "" || dotted && (collection == "" || rest == "") {
		return -1, fmt.Errorf("%w: %q; want name or collection.name, there are: %s", records.ErrName, name, paths(entries, key))
	}
	return -1, fmt.Errorf("%w: %q%s; there are: %s", ErrNoEntry, name, hint(entries, key, name), paths(entries, key))
}

func match[E any](entries []E, key func(*E) (collection, name string), matches func(collection, entry, name string) bool, name string) (at, n int) {
	for i := range entries {
		if c, e := key(&entries[i]); matches(c, e, name) {
			at, n = i, n+1
		}
	}
	return at, n
}

func isName(_, entry, name string) bool { return entry == name }

func IsPath(collection, entry, name string) bool {
	n := len(collection)
	return len(name) == n+1+len(entry) && name[n] == '.' && name[:n] == collection && name[n+1:] == entry
}

const listed = 20

func paths[E any](entries []E, key func(*E) (collection, name string)) string {
	if len(entries) == 0 {
		return "none"
	}
	var s strings.Builder
	for i := range entries {
		if i == listed {
			fmt.Fprintf(&s, " and %d more", len(entries)-listed)
			break
		}
		if i > 0 {
			s.WriteString(", ")
		}
		collection, name := key(&entries[i])
		s.WriteString(collection + "." + name)
	}
	return s.String()
}

func hint[E any](entries []E, key func(*E) (collection, name string), name string) string {
	nearest, best := "", len(name)/3+2
	for i := range entries {
		collection, entry := key(&entries[i])
		path := collection + "." + entry
		for _, candidate := range []string{entry, path} {
			if d := edits.Distance(strings.ToLower(name), strings.ToLower(candidate), best); d < best {
				nearest, best = path, d
			}
		}
	}
	if nearest == "" {
		return ""
	}
	return " (did you mean " + nearest + "?)"
}
