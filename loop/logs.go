package loop

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/columns"
	"github.com/lazo-ml/lazo/internal/records"
)

// Collection groups log entries by kind. Any name without a dot is allowed, except "elapsed", which the history drops.
type Collection string

const (
	Losses  Collection = "losses"
	Metrics Collection = "metrics"
	// Stateful has metrics over several steps, like means since the last reset.
	Stateful Collection = "stateful_metrics"
	Outputs  Collection = "outputs"
)

// Entry is a logged value.
type Entry struct {
	Collection Collection
	Name       string
	Value      Value
}

// Path returns the full name: collection.name.
func (e Entry) Path() string { return string(e.Collection) + "." + e.Name }

// IsNumber reports whether the value is a single number.
func (e Entry) IsNumber() bool {
	_, payload := e.Value.(abilities.Payload)
	return !payload
}

// Any returns the value: a float64, an array, or another logged value. It may wait for a device.
func (e Entry) Any() (any, error) {
	if p, ok := e.Value.(abilities.Payload); ok {
		return p.Any()
	}
	return e.Value.Float()
}

// Logs has the logged values of an iteration, in order. The zero value is empty.
type Logs struct {
	entries []Entry
	inline  *inline // nil if other logs share the entries
}

// one allocation
type inline struct {
	entries [3]Entry
	numbers [3]number
	filled  int
}

// SetAll is [Logs.Set] for a list. Empty logs keep the slice, which then must not have a nil value or a name twice in
// a collection.
func (l *Logs) SetAll(entries []Entry) { l.Merge(Logs{entries: entries}) }

// Set logs a number of any type, a [Value], or any other value, in place of an entry of the same collection and name.
func (l *Logs) Set(c Collection, name string, v any) {
	value, ok := v.(Value)
	if !ok {
		value = anyValue{v}
		if n, err := value.Float(); err == nil {
			l.number(c, name, n)
			return
		}
	}
	l.set(c, name, value)
}

func (l *Logs) set(c Collection, name string, v Value) {
	for i := range l.entries {
		if l.entries[i].Name == name && l.entries[i].Collection == c {
			l.copyBeforeWrite()
			l.entries[i].Value = v
			return
		}
	}
	l.copyBeforeWrite()
	l.entries = append(l.entries, Entry{c, name, v})
	l.inline.filled = len(l.entries)
}

func (l *Logs) copyBeforeWrite() {
	// With more entries, another copy of these logs was extended.
	if l.inline == nil || l.inline.filled != len(l.entries) {
		l.inline = &inline{filled: len(l.entries)}
		l.entries = append(l.inline.entries[:0], l.entries...)
	}
}

func (l *Logs) number(c Collection, name string, v float64) {
	for i := range l.entries {
		if l.entries[i].Name == name && l.entries[i].Collection == c {
			l.set(c, name, number(v))
			return
		}
	}
	l.copyBeforeWrite()
	at := len(l.entries)
	var value Value
	if at < len(l.inline.numbers) {
		l.inline.numbers[at] = number(v)
		value = &l.inline.numbers[at]
	} else {
		value = number(v)
	}
	l.entries = append(l.entries, Entry{c, name, value})
	l.inline.filled = len(l.entries)
}

// Loss logs a number in [Losses] and other given collections, which make the short name ambiguous.
func (l *Logs) Loss(name string, v float64, also ...Collection) {
	l.number(Losses, name, v)
	for _, c := range also {
		l.number(c, name, v)
	}
}

// Metric logs a number in [Metrics].
func (l *Logs) Metric(name string, v float64) { l.number(Metrics, name, v) }

// Stateful logs a number in [Stateful].
func (l *Logs) Stateful(name string, v float64) { l.number(Stateful, name, v) }

// Output logs any value in [Outputs]. A number keeps its type.
func (l *Logs) Output(name string, v any) {
	value, ok := v.(Value)
	if !ok {
		value = anyValue{v}
	}
	l.set(Outputs, name, value)
}

// Merge adds the entries of other, which replace those of the same name. Later changes of l do not change other.
func (l *Logs) Merge(other Logs) {
	switch {
	case len(other.entries) == 0:
		return
	case len(l.entries) == 0:
		// The capacity keeps later entries out of the task's slice.
		*l = other.view()
		return
	}
	for _, e := range other.entries {
		l.set(e.Collection, e.Name, e.Value)
	}
}

func (l *Logs) update(other Logs) {
	for i := range other.entries {
		e := &other.entries[i]
		if i < len(l.entries) && l.inline != nil && l.entries[i].Name == e.Name && l.entries[i].Collection == e.Collection {
			l.entries[i].Value = e.Value
			continue
		}
		l.set(e.Collection, e.Name, e.Value)
	}
}

// Setting an entry in the view does not change l.
func (l Logs) view() Logs {
	return Logs{entries: l.entries[:len(l.entries):len(l.entries)]}
}

// Clone returns an independent copy.
func (l Logs) Clone() Logs { return Logs{entries: slices.Clone(l.entries)} }

// Suffix returns a copy with "_" and the suffix, if not empty, after each name.
func (l Logs) Suffix(suffix string) Logs { return l.renamed("", suffix) }

// Prefix returns a copy with the prefix and "_" before each name.
func (l Logs) Prefix(prefix string) Logs { return l.renamed(prefix, "") }

func (l Logs) renamed(prefix, suffix string) Logs {
	if prefix != "" {
		prefix += "_"
	}
	if suffix != "" {
		suffix = "_" + suffix
	}
	l = l.Clone()
	for i := range l.entries {
		l.entries[i].Name = prefix + l.entries[i].Name + suffix
	}
	return l
}

func (l Logs) Len() int { return len(l.entries) }

// All iterates over the entries.
func (l Logs) All() iter.Seq[Entry] { return slices.Values(l.entries) }

// Get returns an entry by its name ("loss") or full name ("losses.loss"), which it prefers. Names may contain dots. The
// error lists the known names; without a match it wraps [ErrNoEntry].
func (l Logs) Get(name string) (Entry, error) {
	i, err := locate(l.entries, name)
	if err != nil {
		return Entry{}, fmt.Errorf("loop: %w", err)
	}
	return l.entries[i], nil
}

// Float is [Logs.Get] for a number.
func (l Logs) Float(name string) (float64, error) {
	e, err := l.Get(name)
	if err != nil {
		return 0, err
	}
	v, err := e.Value.Float()
	if err != nil {
		return 0, fmt.Errorf("loop: %s: %w", e.Path(), err)
	}
	return v, nil
}

// String returns names and six-digit numbers, "loss=0.25 accuracy=0.9375", and the types of other values. It may wait
// for a device.
func (l Logs) String() string {
	words := make([]string, len(l.entries))
	for i, e := range l.entries {
		if v, err := e.Value.Float(); err == nil {
			words[i] = fmt.Sprintf("%s=%.6g", e.Name, v)
		} else {
			words[i] = fmt.Sprintf("%s=(%v)", e.Name, err)
		}
	}
	return strings.Join(words, " ")
}

// Value is a logged value that is read lazily. One that is not a number has the method Any() (any, error) in addition.
type Value interface {
	// Float may wait for a device. Another value is an error.
	Float() (float64, error)
}

type number = columns.Number

type anyValue struct{ v any }

func (g anyValue) Any() (any, error) { return g.v, nil }

func (g anyValue) Float() (float64, error) {
	switch v := reflect.ValueOf(g.v); {
	case v.CanFloat():
		return v.Float(), nil
	case v.CanInt():
		return float64(v.Int()), nil
	case v.CanUint():
		return float64(v.Uint()), nil
	}
	return 0, fmt.Errorf("%T is not a number", g.v)
}

const elapsedCollection Collection = records.Collection
