package loop

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Collection groups log entries by what they are. Any name is allowed; these have a meaning to lazo.
type Collection string

const (
	Losses  Collection = "losses"
	Metrics Collection = "metrics"
	Outputs Collection = "outputs"
)

// Value is something logged. It is read lazily: Float may wait for a device, and nothing is copied from there
// before somebody asks.
type Value interface {
	// Float is the value as a number.
	Float() (float64, error)
}

// Number is a [Value] that is known already.
type Number float64

// Float gives the number itself.
func (n Number) Float() (float64, error) { return float64(n), nil }

// Entry is one logged value with its place.
type Entry struct {
	Collection Collection
	Name       string
	Value      Value
}

// Path is the full name of the entry: collection.name.
func (e Entry) Path() string { return string(e.Collection) + "." + e.Name }

// Logs is what the tasks of a turn reported, in the order in which they did. The zero value is empty and ready.
type Logs struct{ entries []Entry }

// ErrNoEntry and ErrAmbiguous say why a name could not be looked up in logs or in a history.
var (
	ErrNoEntry   = errors.New("no such entry")
	ErrAmbiguous = errors.New("ambiguous name")
)

// NewLogs makes logs of the given entries; it keeps the slice.
func NewLogs(entries []Entry) Logs { return Logs{entries} }

// Set puts a value under a name; an entry with the same collection and name is replaced.
func (l *Logs) Set(c Collection, name string, v Value) {
	for i := range l.entries {
		if l.entries[i].Name == name && l.entries[i].Collection == c {
			l.entries[i].Value = v
			return
		}
	}
	l.entries = append(l.entries, Entry{c, name, v})
}

// Loss logs a number in [Losses].
func (l *Logs) Loss(name string, v float64) { l.Set(Losses, name, Number(v)) }

// Metric logs a number in [Metrics].
func (l *Logs) Metric(name string, v float64) { l.Set(Metrics, name, Number(v)) }

// Merge adds the entries of other; where both have an entry, other's value stays.
func (l *Logs) Merge(other Logs) {
	if len(l.entries) == 0 {
		// The usual case is one task that logs: share its entries. The capacity is cut, so that a later entry of this
		// turn cannot reach the slice of the task.
		l.entries = other.entries[:len(other.entries):len(other.entries)]
		return
	}
	l.entries = slices.Clone(l.entries)
	for _, e := range other.entries {
		l.Set(e.Collection, e.Name, e.Value)
	}
}

// Len is the number of entries.
func (l Logs) Len() int { return len(l.entries) }

// All iterates over the entries.
func (l Logs) All() iter.Seq[Entry] { return slices.Values(l.entries) }

// Get finds an entry by its name ("loss") or by its full name ("losses.loss"). The error wraps [ErrNoEntry] or
// [ErrAmbiguous] and lists what there is.
func (l Logs) Get(name string) (Entry, error) {
	found, n := Entry{}, 0
	for _, e := range l.entries {
		if e.is(name) {
			found, n = e, n+1
		}
	}
	switch n {
	case 1:
		return found, nil
	case 0:
		return Entry{}, fmt.Errorf("loop: %w: %q; logged are: %s", ErrNoEntry, name, paths(l.entries))
	}
	return Entry{}, fmt.Errorf("loop: %w: %q; say one of: %s", ErrAmbiguous, name, paths(l.entries))
}

// Float reads the number under a name; see [Logs.Get] for the names and errors.
func (l Logs) Float(name string) (float64, error) {
	e, err := l.Get(name)
	if err != nil {
		return 0, err
	}
	return e.Value.Float()
}

func (e Entry) is(name string) bool {
	if e.Name == name {
		return true
	}
	collection, rest, ok := strings.Cut(name, ".")
	return ok && string(e.Collection) == collection && e.Name == rest
}

func paths(entries []Entry) string {
	if len(entries) == 0 {
		return "nothing"
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Path()
	}
	return strings.Join(names, ", ")
}
