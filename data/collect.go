package data

import (
	"errors"
	"fmt"
	"iter"
)

// Items is the sequence of a slice's items, in order and without an error; it can be iterated again. It keeps the
// slice: do not change it meanwhile. The sequence of a set's examples is [Set.Batches] of 1.
func Items[E any](items []E) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		for _, e := range items {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Collect makes a set of all examples of source, batches of any sizes, as a copy: for a pipeline with a result that
// fits into memory and is to be shuffled as a whole. More than limit examples (1 or more) are an error which wraps
// [ErrLimit]: a source without an end does not fill the memory; [Take] ends it earlier. An error of source is returned
// as it is. No example at all is an error, too.
func Collect(source iter.Seq2[Batch, error], limit int) (*Set, error) {
	switch {
	case limit < 1:
		return nil, fmt.Errorf("data: collect at most %d examples: expected at least 1", limit)
	case source == nil:
		return nil, fmt.Errorf("data: collect: %w", errNoSource)
	}
	var parts []Batch
	w := waiting{} // for its check
	have := 0
	for b, err := range source {
		if err == nil {
			b, err = b.OnHost()
		}
		if err != nil {
			return nil, err
		}
		rows, err := w.check(b)
		if err != nil {
			return nil, fmt.Errorf("data: collect: %w", err)
		}
		if have += rows; have > limit {
			return nil, fmt.Errorf("data: collect: more than %d examples: %w; take a larger limit, or end the source with data.Take", limit, ErrLimit)
		}
		w.like = b
		parts = append(parts, b)
	}
	if have == 0 {
		return nil, errors.New("data: collect: the source has no examples")
	}
	if len(parts) == 1 { // the only case in which joined would not copy
		parts = append(parts, parts[0].slice(0, 0, have))
	}
	return New(joined(parts).Fields...)
}
