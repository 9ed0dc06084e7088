package data

import (
	"fmt"
	"iter"
	"slices"

	"github.com/lazo-ml/lazo/internal/arrays"
)

// PadSequences pads sequences with fill to one array [len(sequences), length], and returns a mask of these dims, true
// for original items. Fill labels with a value that the loss ignores, like -100. At least one sequence must have an
// item.
//
// The length is the smallest sufficient one of lengths (in any order), without lengths the longest sequence's. A
// longer sequence is an error.
func PadSequences[T int32 | int64 | float32 | float64](sequences [][]T, fill T, lengths ...int) (values, mask Array, err error) {
	longest := 0
	for _, s := range sequences {
		longest = max(longest, len(s))
	}
	length := longest
	if len(lengths) > 0 {
		if length, err = bucket(longest, lengths); err != nil {
			return Array{}, Array{}, fmt.Errorf("data: pad %d sequences: %w", len(sequences), err)
		}
	}
	size, ok := arrays.Size(len(sequences), length)
	if longest == 0 || !ok {
		return Array{}, Array{}, fmt.Errorf("data: pad %d sequences, the longest of %d items, to %d: expected at least one item, and at most %d in all", len(sequences), longest, length, arrays.MostElements)
	}
	flat, there := make([]T, size), make([]bool, size)
	for i, s := range sequences {
		row := flat[i*length : (i+1)*length]
		for j := copy(row, s); j < length; j++ {
			row[j] = fill
		}
		for j := range s {
			there[i*length+j] = true
		}
	}
	dims := []int{len(sequences), length}
	return Array{flat, dims}, Array{there, slices.Clone(dims)}, nil
}

// PackSequences puts several sequences one after another into each row of an array [rows, length], and returns the
// number of each item's sequence in its row: int32 of the same dims, from 1 on, 0 for filling. Sequences of equal
// lengths, like tokens and labels, get the same places. Empty and longer sequences are errors.
func PackSequences[T int32 | int64 | float32 | float64](sequences [][]T, fill T, length int) (values, numbers Array, err error) {
	all := len(sequences)
	fail := func(format string, of ...any) (Array, Array, error) {
		return Array{}, Array{}, fmt.Errorf("data: pack %d sequences into rows of %d: "+format, append([]any{all, length}, of...)...)
	}
	items := 0
	for _, s := range sequences {
		items += len(s)
	}
	if length < 1 || all == 0 || length > arrays.MostElements || items > arrays.MostElements/2 {
		return fail("expected a length of at least 1, and at least one sequence and at most %d items", arrays.MostElements/2)
	}
	var flat []T
	var of []int32
	spaces, last := make([][]int, length+1), []int32(nil) // rows by their space, and the last number in each
	for i, s := range sequences {
		if len(s) < 1 || len(s) > length {
			return fail("sequence %d has %d items, expected 1 to %[2]d: truncate it, leave it out, or give a larger length", i, len(s), length)
		}
		space := len(s)
		for space < length && len(spaces[space]) == 0 {
			space++
		}
		if len(spaces[space]) == 0 {
			spaces[space], last = append(spaces[space], len(last)), append(last, 0)
			flat, of = append(flat, slices.Repeat([]T{fill}, length)...), append(of, make([]int32, length)...)
		}
		row := spaces[space][0]
		spaces[space], spaces[space-len(s)] = spaces[space][1:], append(spaces[space-len(s)], row)
		last[row]++
		begin := (row+1)*length - space
		copy(flat[begin:], s)
		for j := range s {
			of[begin+j] = last[row]
		}
	}
	dims := []int{len(last), length}
	return Array{flat, dims}, Array{of, slices.Clone(dims)}, nil
}

func bucket(longest int, lengths []int) (int, error) {
	if least := slices.Min(lengths); least < 1 {
		return 0, fmt.Errorf("to the length %d: expected at least 1", least)
	}
	best := 0
	for _, l := range lengths {
		if l >= longest && (best == 0 || l < best) {
			best = l
		}
	}
	if best == 0 {
		return 0, fmt.Errorf("the longest has %d items, more than %d: truncate it, leave it out, or give a larger length", longest, slices.Max(lengths))
	}
	return best, nil
}

// Bucket is a group of items to be padded to one length.
type Bucket[E any] struct {
	Items  []E
	Length int // at least that of each item
}

// Buckets groups items of similar length, n at a time: each goes into the smallest sufficient bucket of lengths (in
// any order), and a full bucket is yielded in its own memory.
//
// length returns an item's length, 0 or more. An item too long for all becomes an error in its place. At the end,
// incomplete buckets are yielded or dropped. To shuffle, put [ShuffleBuffer] in [Passes] before Buckets: incomplete
// buckets continue in the next pass.
func Buckets[E any](
	source iter.Seq2[E, error], n int, rest Remainder, length func(E) int, lengths ...int,
) iter.Seq2[Bucket[E], error] {
	lengths = slices.Clone(lengths)
	slices.Sort(lengths)
	err := refuse("buckets", source == nil, length == nil)
	switch {
	case err != nil:
	case n < 1:
		err = fmt.Errorf("data: buckets of %d items: expected at least 1", n)
	case rest != Dropped && rest != Kept:
		err = fmt.Errorf("data: buckets: the policy for the remainder is %v, expected data.Dropped or data.Kept", rest)
	case len(lengths) == 0 || lengths[0] < 1:
		err = fmt.Errorf("data: buckets of the lengths %v: expected one or more, of at least 1", lengths)
	}
	if err != nil {
		return failed[Bucket[E]](err)
	}
	return func(yield func(Bucket[E], error) bool) {
		waiting, item := make([][]E, len(lengths)), 0
		for e, err := range source {
			item++
			k := 0
			if err == nil {
				k, err = within(lengths, length(e), item)
			}
			if err != nil {
				if !yield(Bucket[E]{}, err) {
					return
				}
				continue
			}
			if waiting[k] = append(waiting[k], e); len(waiting[k]) < n {
				continue
			}
			full := Bucket[E]{waiting[k], lengths[k]}
			waiting[k] = nil
			if !yield(full, nil) {
				return
			}
		}
		for k, items := range waiting {
			if rest == Kept && len(items) > 0 && !yield(Bucket[E]{items, lengths[k]}, nil) {
				return
			}
		}
	}
}

func within(lengths []int, long, item int) (int, error) {
	k, _ := slices.BinarySearch(lengths, long)
	if long < 0 || k == len(lengths) {
		return 0, fmt.Errorf("data: buckets: item %d has the length %d, expected 0 to %d: truncate it, leave it out "+
			"(data.Filter), or give a larger length", item, long, lengths[len(lengths)-1])
	}
	return k, nil
}
