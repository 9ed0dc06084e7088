package data

import (
	"fmt"
	"iter"
	"slices"
)

// Chunk groups n items (1 or more) of source at a time; a rest of fewer at the end is kept, or dropped. Each chunk is
// memory of its own. With [Map] it makes batches of whatever items, by a function of one's own. An error comes as soon as
// it is there, before the items that wait.
func Chunk[E any](source iter.Seq2[E, error], n int, rest Remainder) iter.Seq2[[]E, error] {
	if rest != Dropped && rest != Kept {
		return failed[[]E](fmt.Errorf("data: chunk: the rest is to be %v, expected data.Dropped or data.Kept", rest))
	}
	return windows("chunk", source, n, n, rest)
}

// Window gives n items (1 or more) at a time, each window stride items (1 or more) behind the one before it: all runs of n items with
// stride 1. What does not fill a window at the end is dropped. Each window is memory of its own. An error comes as soon as
// it is there.
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

// PadSequences makes sequences of several lengths one array [len(sequences), longest], with fill behind the shorter ones,
// and a mask of the same dims: true for what was there. Fill a label with what the loss leaves out, as -100. There must be
// at least one sequence with an item.
func PadSequences[T int32 | int64 | float32 | float64](sequences [][]T, fill T) (values, mask Array, err error) {
	longest := 0
	for _, s := range sequences {
		longest = max(longest, len(s))
	}
	size, ok := product([]int{len(sequences), longest})
	if longest == 0 || !ok {
		return Array{}, Array{}, fmt.Errorf("data: pad %d sequences, the longest of %d items: expected at least one item, and a size below 2^63", len(sequences), longest)
	}
	flat, there := make([]T, size), make([]bool, size)
	for i, s := range sequences {
		row := flat[i*longest : (i+1)*longest]
		for j := copy(row, s); j < longest; j++ {
			row[j] = fill
		}
		for j := range s {
			there[i*longest+j] = true
		}
	}
	dims := []int{len(sequences), longest}
	return Array{flat, dims}, Array{there, slices.Clone(dims)}, nil
}
