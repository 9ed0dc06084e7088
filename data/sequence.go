package data

import (
	"errors"
	"fmt"
	"iter"
)

var errNoSource = errors.New("there is no source (nil)")

// Repeat iterates source times times (math.MaxInt: without end), with continuing positions ([Batch].At). A pass with an
// error is the last. A pass without a batch is an error.
func Repeat[B any](source iter.Seq2[B, error], times int) iter.Seq2[B, error] {
	if times < 1 {
		return failed[B](fmt.Errorf("data: repeat %d times: expected at least 1", times))
	}
	if source == nil {
		return failed[B](fmt.Errorf("data: repeat: %w", errNoSource))
	}
	return passes("repeat", func(pass int) iter.Seq2[B, error] {
		if pass >= times {
			return nil
		}
		return source
	})
}

// Passes iterates source(0), source(1), … until source returns nil: for example a [ShuffleBuffer] with the seed
// seed+pass. Use the argument: a count inside the source would begin at 0 in a resumed run.
func Passes[B any](source func(pass int) iter.Seq2[B, error]) iter.Seq2[B, error] {
	if err := refuse("passes", false, source == nil); err != nil {
		return failed[B](err)
	}
	return passes("passes", source)
}

func passes[B any](what string, source func(pass int) iter.Seq2[B, error]) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		before, next := 0, 0
		for pass := 0; ; pass++ {
			batches := source(pass)
			if batches == nil {
				return
			}
			empty, broken, in := true, false, place{}
			for b, err := range batches {
				empty, broken = false, broken || err != nil
				if err == nil {
					in.number(&b)
					next = max(next, moveOn(&b, before))
				}
				if !yield(b, err) {
					return
				}
			}
			before = next
			if broken {
				return
			}
			if empty {
				var none B
				yield(none, fmt.Errorf("data: %s: pass %d returned no batch: the source is empty, or cannot be iterated again", what, pass+1))
				return
			}
		}
	}
}

// Take ends source after n batches (0 or more), without requesting another one. An error counts as a batch.
func Take[B any](source iter.Seq2[B, error], n int64) iter.Seq2[B, error] {
	if n < 0 {
		return failed[B](fmt.Errorf("data: take %d batches: expected at least 0", n))
	}
	if source == nil {
		return failed[B](fmt.Errorf("data: take: %w", errNoSource))
	}
	return func(yield func(B, error) bool) {
		if n == 0 {
			return
		}
		taken := int64(0)
		for b, err := range source {
			taken++
			forgetEnd(&b)
			if !yield(b, err) || taken == n {
				return
			}
		}
	}
}

func failed[B any](err error) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		var none B
		yield(none, err)
	}
}
