package loop

import (
	"fmt"
	"iter"
	"slices"

	"github.com/lazo-ml/lazo/internal/columns"
	"github.com/lazo-ml/lazo/internal/pieces"
	"github.com/lazo-ml/lazo/internal/records"
)

// History has a run's logs: a row for each kept iteration ([Keep], [Thin]) that logged anything. It is not safe for
// concurrent use.
//
// Names are those of [Logs.Get] in the whole history: a loss and a metric are ambiguous even in different rows. The
// collection "elapsed" has the progress at each row:
//
//	elapsed.steps    iterations
//	elapsed.samples  examples
//	elapsed.batch    examples in the batch of this iteration
//	elapsed.time     active time in seconds
//	elapsed.epochs   complete passes over the data
//	elapsed.date     seconds since 1970, NaN if the run had no date
//
// A [Value] is read once, when first needed.
type History struct {
	most    int   // 0: no limit
	every   int64 // of numbers that this divides
	number  int64
	skipped int64
	rows    pieces.List[row]
	columns []*column
	names   []Entry
	index   map[entryKey]int
	layout  []int
}

type row struct {
	number  int64
	elapsed Elapsed
	batch   int64 // weight in a mean
	fixed   bool  // a monitor reads it again when resumed
}

type entryKey struct {
	collection Collection
	name       string
}

// Commit adds a row, for hand-written loops: a copy of the logs of the iteration that ended at elapsed, and the
// examples in its batch.
func (h *History) Commit(elapsed Elapsed, logs Logs, samples int64) {
	h.commit(elapsed, logs, samples, false)
}

func (h *History) commit(elapsed Elapsed, logs Logs, samples int64, fixed bool) {
	h.dropProvisional()
	h.number++
	h.rows.Push(row{h.number, elapsed, samples, fixed})
	for i := range logs.entries {
		if e := &logs.entries[i]; e.Collection != elapsedCollection {
			h.columnOf(i, e).Add(h.number, e.Value)
		}
	}
	h.bound()
}

func (h *History) follow(is func(before, after Elapsed, logs Logs) bool) {
	var before Elapsed
	all := h.cursors()
	for i := range h.rows.Len() {
		r := h.rows.At(i)
		r.fixed = is(before, r.elapsed, entriesAt(all, r.number))
		before = r.elapsed
	}
}

func (h *History) columnOf(i int, e *Entry) *column {
	if i < len(h.layout) {
		if c := h.columns[h.layout[i]]; c.name == e.Name && c.collection == e.Collection {
			return c
		}
	}
	p := entryKey{e.Collection, e.Name}
	at, ok := h.index[p]
	if !ok {
		if h.index == nil {
			h.index = map[entryKey]int{}
		}
		at = len(h.columns)
		h.index[p] = at
		h.columns = append(h.columns, &column{entryKey: p})
		h.names = append(h.known(), Entry{Collection: e.Collection, Name: e.Name})
	}
	for len(h.layout) <= i {
		h.layout = append(h.layout, 0)
	}
	h.layout[i] = at
	return h.columns[at]
}

func (h *History) known() []Entry {
	if h.names == nil {
		for _, f := range records.Fields {
			h.names = append(h.names, Entry{Collection: elapsedCollection, Name: f.Name})
		}
	}
	return h.names
}

func (h *History) Len() int { return h.rows.Len() }

// Names returns the distinct names of all entries, like "loss", sorted.
func (h *History) Names() []string {
	var names []string
	for _, c := range h.columns {
		names = append(names, c.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Rows iterates over the rows, oldest first. Reading a value of a dropped row is an error.
func (h *History) Rows() iter.Seq2[Elapsed, Logs] {
	return func(yield func(Elapsed, Logs) bool) {
		all := h.cursors()
		for r := range h.rows.All {
			if !yield(r.elapsed, entriesAt(all, r.number)) {
				return
			}
		}
	}
}

// Since returns a new history of the part after a step. Unread values are read once for both.
func (h *History) Since(step int64) *History {
	part := &History{}
	first := h.rows.Search(func(r *row) bool { return r.elapsed.Steps > step })
	if first == h.rows.Len() {
		return part
	}
	number := h.rows.At(first).number
	part.skipped = h.skipped + int64(first)
	all := h.cursors()
	for i := range all {
		all[i].at = all[i].column.Search(number)
	}
	for i := first; i < h.rows.Len(); i++ {
		r := *h.rows.At(i)
		part.number = r.number - 1
		part.Commit(r.elapsed, entriesAt(all, r.number), r.batch)
	}
	return part
}

func entriesAt(all []cursor, row int64) Logs {
	var entries []Entry
	for i := range all {
		if c := &all[i]; c.seek(row) {
			entries = append(entries, Entry{c.column.collection, c.column.name, c.column.Value(c.at)})
		}
	}
	return Logs{entries: entries}
}

func (h *History) cursors() []cursor {
	all := make([]cursor, len(h.columns))
	for i, c := range h.columns {
		all[i].column = c
	}
	return all
}

// Collect returns the values of the rows that have all names: a list per name, oldest first. A name in no row is an
// [ErrNoEntry].
func (h *History) Collect(names ...string) ([][]float64, error) {
	cursors := make([]cursor, len(names))
	for i, name := range names {
		var err error
		if cursors[i], err = h.find(name); err != nil {
			return nil, err
		}
	}
	lists := make([][]float64, len(names))
rows:
	for r := range h.rows.All {
		for i := range cursors {
			if !cursors[i].seek(r.number) {
				continue rows
			}
		}
		for i := range cursors {
			v, err := cursors[i].read(*r)
			if err != nil {
				return nil, err
			}
			lists[i] = append(lists[i], v)
		}
	}
	return lists, nil
}

// Series returns all values under a name with the elapsed of each. None is an [ErrNoEntry].
func (h *History) Series(name string) (at []Elapsed, values []float64, err error) {
	err = h.each(name, func(r row, v float64) { at, values = append(at, r.elapsed), append(values, v) })
	if err != nil {
		return nil, nil, err
	}
	return at, values, nil
}

// Last returns the newest value under a name.
func (h *History) Last(name string) (float64, error) {
	c, err := h.find(name)
	if err != nil {
		return 0, err
	}
	i := h.rows.Len() - 1
	if c.column != nil {
		if c.at = c.column.Len() - 1; c.at < 0 {
			return 0, errGone(name)
		}
		number := c.column.Row(c.at)
		i = h.rows.Search(func(r *row) bool { return r.number >= number })
	}
	if i < 0 {
		return 0, errGone(name)
	}
	return c.read(*h.rows.At(i))
}

// Mean returns the mean of all values under a name, weighted by examples. Without examples it returns an error.
func (h *History) Mean(name string) (float64, error) {
	values, samples, err := h.weighted(name)
	if err != nil {
		return 0, err
	}
	if total(samples) == 0 {
		return 0, fmt.Errorf("loop: mean of %q: the batches had no examples", name)
	}
	return sampleMean(values, samples), nil
}

func (h *History) weighted(name string) (values, samples []float64, err error) {
	err = h.each(name, func(r row, v float64) { values, samples = append(values, v), append(samples, float64(r.batch)) })
	return values, samples, err
}

func (h *History) each(name string, do func(row, float64)) error {
	c, err := h.find(name)
	if err != nil {
		return err
	}
	found := false
	for r := range h.rows.All {
		if !c.seek(r.number) {
			continue
		}
		v, err := c.read(*r)
		if err != nil {
			return err
		}
		found = true
		do(*r, v)
	}
	if !found {
		return errGone(name)
	}
	return nil
}

func (h *History) find(name string) (cursor, error) {
	at, err := locate(h.known(), name)
	if err != nil {
		return cursor{}, fmt.Errorf("loop: history: %w", err)
	}
	if at < len(records.Fields) {
		return cursor{field: &records.Fields[at]}, nil
	}
	return cursor{column: h.columns[at-len(records.Fields)]}, nil
}

func errGone(name string) error {
	return fmt.Errorf("loop: history: %w: %q: no kept row has this entry", ErrNoEntry, name)
}

type column struct {
	entryKey
	columns.Column
}

type cursor struct {
	field  *records.Field
	column *column
	at     int
}

func (c *cursor) seek(row int64) bool {
	if c.field != nil {
		return true
	}
	for c.at < c.column.Len() && c.column.Row(c.at) < row {
		c.at++
	}
	return c.at < c.column.Len() && c.column.Row(c.at) == row
}

func (c *cursor) read(r row) (float64, error) {
	if c.field != nil {
		return c.field.Number(r.times()), nil
	}
	v, err := c.column.Number(c.at)
	if err != nil {
		return 0, fmt.Errorf("loop: history: step %d: %s.%s: %w", r.elapsed.Steps, c.column.collection, c.column.name, err)
	}
	return v, nil
}
