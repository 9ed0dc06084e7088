package data

import (
	"fmt"
	"iter"
	"slices"
)

// Chunk groups each n items in their own memory. A smaller last group is kept or dropped.
func Chunk[E any](source iter.Seq2[E, error], n int, rest Remainder) iter.Seq2[[]E, error] {
	if rest != Dropped && rest != Kept {
		return failed[[]E](fmt.Errorf("data: chunk: the policy for the remainder is %v, expected data.Dropped or data.Kept", rest))
	}
	return windows("chunk", source, n, n, rest)
}

// Window yields windows of n items, each stride items after the one before, in their own memory. The last is complete.
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
		omit := 0
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
