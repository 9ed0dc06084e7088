package loop

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lazo-ml/lazo/internal/edits"
	"github.com/lazo-ml/lazo/internal/records"
)

// ErrNoEntry is wrapped by the error for a name under which nothing was logged.
var ErrNoEntry = errors.New("no such entry")

func locate(entries []Entry, name string) (int, error) {
	matches := (*Entry).hasPath
	at, n := match(entries, matches, name)
	if n == 0 {
		matches = (*Entry).hasName
		at, n = match(entries, matches, name)
	}
	switch {
	case n == 1:
		return at, nil
	case n > 1:
		var candidates []Entry
		for i := range entries {
			if matches(&entries[i], name) {
				candidates = append(candidates, entries[i])
			}
		}
		return -1, fmt.Errorf("ambiguous name: %q; use one of: %s", name, paths(candidates))
	}
	if collection, rest, dotted := strings.Cut(name, "."); name == "" || dotted && (collection == "" || rest == "") {
		return -1, fmt.Errorf("%w: %q; want name or collection.name, there are: %s", records.ErrName, name, paths(entries))
	}
	return -1, fmt.Errorf("%w: %q%s; there are: %s", ErrNoEntry, name, hint(entries, name), paths(entries))
}

func match(entries []Entry, matches func(*Entry, string) bool, name string) (at, n int) {
	for i := range entries {
		if matches(&entries[i], name) {
			at, n = i, n+1
		}
	}
	return at, n
}

func (e *Entry) hasName(name string) bool { return e.Name == name }

func (e *Entry) hasPath(name string) bool {
	n := len(e.Collection)
	return len(name) == n+1+len(e.Name) && name[n] == '.' && name[:n] == string(e.Collection) && name[n+1:] == e.Name
}

const listed = 20

func paths(entries []Entry) string {
	if len(entries) == 0 {
		return "none"
	}
	var s strings.Builder
	for i, e := range entries {
		if i == listed {
			fmt.Fprintf(&s, " and %d more", len(entries)-listed)
			break
		}
		if i > 0 {
			s.WriteString(", ")
		}
		s.WriteString(e.Path())
	}
	return s.String()
}

func hint(entries []Entry, name string) string {
	nearest, best := "", len(name)/3+2
	for _, e := range entries {
		for _, candidate := range []string{e.Name, e.Path()} {
			if d := edits.Distance(strings.ToLower(name), strings.ToLower(candidate), best); d < best {
				nearest, best = e.Path(), d
			}
		}
	}
	if nearest == "" {
		return ""
	}
	return " (did you mean " + nearest + "?)"
}
