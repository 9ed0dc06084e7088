package data

import (
	"errors"
	"fmt"
	"iter"
)

// Items yields the slice's items. It keeps the slice: do not change it.
func Items[E any](items []E) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		for _, e := range items {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Collect copies all examples of source, batches of any sizes, into a set. No examples are an error; more than limit
// are one that wraps [ErrLimit].
func Collect(source iter.Seq2[Batch, error], limit int) (*Set, error) {
	switch {
	case limit < 1:
		return nil, fmt.Errorf("data: collect at most %d examples: expected at least 1", limit)
	case source == nil:
		return nil, fmt.Errorf("data: collect: %w", errNoSource)
	}
	var parts []Batch
	w := waiting{}
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
			return nil, fmt.Errorf("data: collect: more than %d examples: %w; use a larger limit, or limit the source by data.Take", limit, ErrLimit)
		}
		w.like = b
		parts = append(parts, b)
	}
	if have == 0 {
		return nil, errors.New("data: collect: the source has no examples")
	}
	if len(parts) == 1 { // joined copies
		parts = append(parts, parts[0].slice(0, 0, have))
	}
	return New(joined(parts).Fields...)
}
