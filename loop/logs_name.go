package loop

import (
	"slices"

	"github.com/lazo-ml/lazo/internal/lookup"
)

// ErrNoEntry reports a name that nothing logged.
var ErrNoEntry = lookup.ErrNoEntry

func locate(entries []Entry, name string) (int, error) { return lookup.Find(entries, keyOf, name) }

func keyOf(e *Entry) (collection, name string) { return string(e.Collection), e.Name }

func hasEntry(entry string, logs Logs) bool {
	return slices.ContainsFunc(logs.entries, func(e Entry) bool { return e.Name == entry || e.hasPath(entry) })
}

func (e *Entry) hasPath(name string) bool { return lookup.IsPath(string(e.Collection), e.Name, name) }
