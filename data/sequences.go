package data

import (
	"fmt"
	"iter"
	"slices"
)

// PadSequences makes sequences of several lengths one array [len(sequences), length], with fill behind the shorter
// ones, and a mask of the same dims: true for what was there. Fill a label with what the loss leaves out, as -100.
// There must be at least one sequence with an item.
//
// Without lengths, length is that of the longest sequence. With one length, it is this one, so that all batches have
// the same dims. With several (buckets, in any order), it is the smallest that holds the longest sequence: a step is
// then compiled once for each bucket, and short batches cost less. A sequence that no length holds is an error, not
// cut: a cut sentence can change its label unseen.
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
	size, ok := sized(len(sequences), length)
	if longest == 0 || !ok {
		return Array{}, Array{}, fmt.Errorf("data: pad %d sequences, the longest of %d items, to %d: expected at least one item, and at most %d in all", len(sequences), longest, length, mostElements)
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

// bucket is the smallest of lengths that holds longest items.
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
		return 0, fmt.Errorf("the longest has %d items, more than %d: cut it, leave it out, or give a larger length", longest, slices.Max(lengths))
	}
	return best, nil
}

// Bucket is items that are padded to one length.
type Bucket[E any] struct {
	Items  []E
	Length int // at least that of each item
}

// Buckets groups n items (1 or more) at a time that are about as long as each other: an item goes into the bucket of
// the smallest of lengths (in any order) that holds it, and a bucket is given on when it has n items. With [Map] and
// [PadSequences] they become batches of as many shapes as there are buckets, for each of which a step is compiled:
//
//	buckets := data.Buckets(sentences, 32, data.Dropped, words, 8, 16, 64)
//	batches := data.Map(buckets, func(b data.Bucket[[]int32]) (data.Batch, error) {
//		x, mask, err := data.PadSequences(b.Items, 0, b.Length)
//		…
//	})
//
// Length says how long an item is, 0 or more. One that no bucket holds is an error in its place, and left out: [Filter]
// leaves such items out before. Buckets with fewer items at the end are kept, the shortest length first, or dropped.
// Items are memory of their own.
//
// The order is a function of source alone. Shuffle the items before, with [ShuffleBuffer] in [Passes], which also keeps
// the items that wait in a bucket for the next pass. A run that resumes skips through the buckets (see the package's
// comment on positions).
func Buckets[E any](
	source iter.Seq2[E, error], n int, rest Remainder, length func(E) int, lengths ...int,
) iter.Seq2[Bucket[E], error] {
	lengths = slices.Sorted(slices.Values(lengths))
	err := refuse("buckets", source == nil, length == nil)
	switch {
	case err != nil:
	case n < 1:
		err = fmt.Errorf("data: buckets of %d items: expected at least 1", n)
	case rest != Dropped && rest != Kept:
		err = fmt.Errorf("data: buckets: the rest is to be %v, expected data.Dropped or data.Kept", rest)
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

// within is the number of the first of ascending lengths that holds so many.
func within(lengths []int, long, item int) (int, error) {
	k, _ := slices.BinarySearch(lengths, long)
	if long < 0 || k == len(lengths) {
		return 0, fmt.Errorf("data: buckets: item %d has the length %d, expected 0 to %d: cut it, leave it out "+
			"(data.Filter), or give a larger length", item, long, lengths[len(lengths)-1])
	}
	return k, nil
}
