package loop

import (
	"fmt"
	"iter"
	"slices"
)

// History is what was logged in a run: one row for each turn that was kept (see [Keep]) and that logged anything.
type History struct{ rows []row }

type row struct {
	elapsed Elapsed
	logs    Logs
	samples int64 // of the turn's own batch: the weight of a mean
}

// Len is the number of rows.
func (h *History) Len() int { return len(h.rows) }

// Rows iterates over the rows, oldest first.
func (h *History) Rows() iter.Seq2[Elapsed, Logs] {
	return func(yield func(Elapsed, Logs) bool) {
		for _, r := range h.rows {
			if !yield(r.elapsed, r.logs) {
				return
			}
		}
	}
}

// Series reads all values that were logged under a name (see [Logs.Get]), with the time of each; turns that did not
// log it are left out. The error wraps [ErrNoEntry] where no row has the name.
func (h *History) Series(name string) (at []Elapsed, values []float64, err error) {
	err = h.each(name, func(r row, v float64) { at, values = append(at, r.elapsed), append(values, v) })
	return at, values, err
}

// Last reads the newest value under a name.
func (h *History) Last(name string) (float64, error) {
	for _, r := range slices.Backward(h.rows) {
		if e, ok, err := r.find(name); err != nil {
			return 0, err
		} else if ok {
			return e.Value.Float()
		}
	}
	return 0, h.missing(name)
}

// Mean is the mean of all values under a name, each weighted by the number of examples in its batch: the mean over
// all examples, also where batches differ in size.
func (h *History) Mean(name string) (float64, error) {
	sum, weight := 0.0, 0.0
	err := h.each(name, func(r row, v float64) { sum, weight = sum+v*float64(r.samples), weight+float64(r.samples) })
	if err != nil {
		return 0, err
	}
	if weight == 0 {
		return 0, fmt.Errorf("loop: mean of %q: the batches had no examples", name)
	}
	return sum / weight, nil
}

func (h *History) each(name string, do func(row, float64)) error {
	found := false
	for _, r := range h.rows {
		e, ok, err := r.find(name)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		v, err := e.Value.Float()
		if err != nil {
			return fmt.Errorf("loop: history: step %d: %s: %w", r.elapsed.Steps, e.Path(), err)
		}
		found = true
		do(r, v)
	}
	if !found {
		return h.missing(name)
	}
	return nil
}

// find is [Logs.Get] for a row that may lack the name.
func (r row) find(name string) (e Entry, ok bool, err error) {
	for _, candidate := range r.logs.entries {
		if !candidate.is(name) {
			continue
		}
		if ok {
			_, err = r.logs.Get(name)
			return Entry{}, false, err
		}
		e, ok = candidate, true
	}
	return e, ok, nil
}

func (h *History) missing(name string) error {
	var all []Entry
	for _, r := range h.rows {
		for _, e := range r.logs.entries {
			if !slices.ContainsFunc(all, func(o Entry) bool { return o.Collection == e.Collection && o.Name == e.Name }) {
				all = append(all, e)
			}
		}
	}
	return fmt.Errorf("loop: history: %w: %q; logged were: %s", ErrNoEntry, name, paths(all))
}
