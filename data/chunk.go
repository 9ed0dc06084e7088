package data

import (
	"fmt"
	"iter"
	"slices"
)

// Chunk groups n items (1 or more) of source at a time; a rest of fewer at the end is kept, or dropped. Each chunk is
// memory of its own. With [Map] it makes batches of whatever items, by a function of one's own. An error comes as soon
// as it is there, before the items that wait.
func Chunk[E any](source iter.Seq2[E, error], n int, rest Remainder) iter.Seq2[[]E, error] {
	if rest != Dropped && rest != Kept {
		return failed[[]E](fmt.Errorf("data: chunk: the rest is to be %v, expected data.Dropped or data.Kept", rest))
	}
	return windows("chunk", source, n, n, rest)
}

// Window gives n items (1 or more) at a time, each window stride items (1 or more) behind the one before it: all runs
// of n items with stride 1. What does not fill a window at the end is dropped. Each window is memory of its own. An
// error comes as soon as it is there.
func Window[E any](source iter.Seq2[E, error], n, stride int) iter.Seq2[[]E, error] {
	if stride < 1 {
		return failed[[]E](fmt.Errorf("data: window with the stride %d: expected at least 1", stride))
	}
	return windows("window", source, n, stride, Dropped)
}

func windows[E any](what string, source iter.Seq2[E, error], n, stride int, rest Remainder) iter.Seq2[[]E, error] {
	if n < 1 {
		return failed[[]E](fmt.Errorf("data: %s of %d items: expected at least 1", what, n))
	}
	if source == nil {
		return failed[[]E](fmt.Errorf("data: %s: %w", what, errNoSource))
	}
	return func(yield func([]E, error) bool) {
		var held []E
		omit := 0 // items before the next window begins
		for e, err := range source {
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			if omit > 0 {
				omit--
				continue
			}
			if held = append(held, e); len(held) < n {
				continue
			}
			if !yield(slices.Clone(held), nil) {
				return
			}
			omit = max(0, stride-n)
			held = slices.Delete(held, 0, min(stride, n))
		}
		if rest == Kept && len(held) > 0 {
			yield(held, nil)
		}
	}
}
