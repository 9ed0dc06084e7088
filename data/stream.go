package data

import (
	"fmt"
	"iter"
	"math/bits"
	"math/rand/v2"
)

// ShuffleBuffer draws each item of a stream at random from a buffer of size items. The order depends only on the
// seed, size and the number of items; vary it by [Passes].
func ShuffleBuffer[B any](source iter.Seq2[B, error], size int, seed uint64) iter.Seq2[B, error] {
	if size < 1 {
		return failed[B](fmt.Errorf("data: shuffle by a buffer of %d: expected at least 1", size))
	}
	if source == nil {
		return failed[B](fmt.Errorf("data: shuffle by a buffer: %w", errNoSource))
	}
	return func(yield func(B, error) bool) {
		random := rand.NewPCG(seed, streamEpoch)
		var buffer []B
		draw := func() int {
			i, _ := bits.Mul64(random.Uint64(), uint64(len(buffer)))
			return int(i)
		}
		for b, err := range source {
			forgetEnd(&b)
			switch {
			case err != nil:
				if !yield(b, err) {
					return
				}
			case len(buffer) < size:
				buffer = append(buffer, b)
			default:
				i := draw()
				out := buffer[i]
				buffer[i] = b
				if !yield(out, nil) {
					return
				}
			}
		}
		for len(buffer) > 0 {
			i, last := draw(), len(buffer)-1
			out := buffer[i]
			buffer[i] = buffer[last]
			buffer = buffer[:last]
			if !yield(out, nil) {
				return
			}
		}
	}
}

// streamEpoch makes a buffer's order independent of a set's.
const streamEpoch = splitEpoch - 1

// Shard yields the items k, k+n, k+2n, … of source, 0 <= k < n, for the k-th of n processes with the same source. The
// last items, fewer than n, are dropped. Each shard has all errors.
func Shard[B any](source iter.Seq2[B, error], k, n int) iter.Seq2[B, error] {
	if err := checkShard(k, n); err != nil {
		return failed[B](fmt.Errorf("data: %w", err))
	}
	if source == nil {
		return failed[B](fmt.Errorf("data: shard: %w", errNoSource))
	}
	return func(yield func(B, error) bool) {
		var mine B
		place := 0
		for b, err := range source {
			if err != nil {
				if !yield(b, err) {
					return
				}
				continue
			}
			if place == k {
				forgetEnd(&b)
				mine = b
			}
			if place++; place == n {
				if place = 0; !yield(mine, nil) {
					return
				}
			}
		}
	}
}

func checkShard(k, n int) error {
	if n < 1 || k < 0 || k >= n {
		return fmt.Errorf("shard %d of %d: expected at least 1 shard, and an index from 0 to the number of shards minus 1", k, n)
	}
	return nil
}

// Shard returns the k-th of n contiguous parts of the set, 0 <= k < n. If n does not divide the examples, Dropped
// drops the rest; Kept gives the first parts one more; Padded copies the last example and adds a [Mask] to each part.
// An empty part is an error.
func (s *Set) Shard(k, n int, rest Remainder) (*Set, error) {
	err := checkShard(k, n)
	if err == nil {
		err = rest.check()
	}
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	each, more := s.len/n, s.len%n
	from, to := k*each, (k+1)*each
	switch {
	case rest == Kept:
		from, to = from+min(k, more), to+min(k+1, more)
	case rest == Padded && more > 0:
		from, to = k*(each+1), (k+1)*(each+1)
	}
	if s.len == 0 || from == to {
		return nil, fmt.Errorf("data: shard %d of %d of a set of %d examples (remainder %v) is empty; use fewer shards", k, n, s.len, rest)
	}
	if rest != Padded {
		return s.view(from, to), nil
	}
	rows, mask := make([]int, to-from), make([]bool, to-from)
	for i := range rows {
		rows[i], mask[i] = min(from+i, s.len-1), from+i < s.len
	}
	part := s.gather(rows)
	for k, f := range part.fields {
		if f.Name != Mask {
			continue
		}
		was, ok := f.Array.Flat.([]bool)
		if !ok || len(was) != len(mask) {
			return nil, fmt.Errorf("data: shard: field %q is %s %v, expected a bool for each example", Mask, f.Array.DType(), f.Array.Dims)
		}
		for i := range mask {
			mask[i] = mask[i] && was[i]
		}
		part.fields[k].Array.Flat = mask
		return part, nil
	}
	part.fields = append(part.fields, Named(Mask, mask, len(mask)))
	return part, nil
}
