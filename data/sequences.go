package data

import (
	"fmt"
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
