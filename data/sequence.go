package data

import (
	"errors"
	"fmt"
	"iter"
)

var errNoSource = errors.New("there is no source (nil)")

// Repeat goes over source the given number of times (1 or more), one pass behind the other. Batches and errors come as
// source gives them, but that the places ([Batch].At) of a pass go on behind those of the pass before; a pass in which
// an error came is the last one. A pass without a batch is an error, too: the source is empty, or cannot be iterated
// again.
//
// Batches are passed on as they are, not copied: one that source does not touch again can be held as long as one likes.
//
// [Set.Batches] has [Epochs] for this, which also shuffles each pass anew and counts it in the batch; Repeat does the
// same pass again. For a stream, see [Passes].
func Repeat[B any](source iter.Seq2[B, error], times int) iter.Seq2[B, error] {
	if times < 1 {
		return failed[B](fmt.Errorf("data: repeat %d times: expected at least 1", times))
	}
	return repeat(source, times)
}

// RepeatForever is [Repeat] without an end: it goes on until the consumer stops, an error came, or a pass has no batch.
func RepeatForever[B any](source iter.Seq2[B, error]) iter.Seq2[B, error] {
	return repeat(source, 0)
}

// repeat goes on for ever with 0 times.
func repeat[B any](source iter.Seq2[B, error], times int) iter.Seq2[B, error] {
	if source == nil {
		return failed[B](fmt.Errorf("data: repeat: %w", errNoSource))
	}
	return passes("repeat", func(pass int) iter.Seq2[B, error] {
		if times > 0 && pass >= times {
			return nil
		}
		return source
	})
}

// Passes goes over source(0), source(1), … one behind the other, as [Repeat] goes over one source, until source gives
// nil: for passes that are to differ.
//
//	data.Passes(func(pass int) iter.Seq2[data.Batch, error] {
//		return data.ShuffleBuffer(stream, 10_000, seed+uint64(pass))
//	})
//
// The pass is an argument, because a source that counts its passes gives another order after each look at it, and could
// not be resumed.
func Passes[B any](source func(pass int) iter.Seq2[B, error]) iter.Seq2[B, error] {
	if err := refuse("passes", false, source == nil); err != nil {
		return failed[B](err)
	}
	return passes("passes", source)
}

func passes[B any](what string, source func(pass int) iter.Seq2[B, error]) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		before, behind := 0, 0 // the first places behind the passes before, and behind the batches so far
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
					behind = max(behind, moveOn(&b, before))
				}
				if !yield(b, err) {
					return
				}
			}
			before = behind
			if broken {
				return
			}
			if empty {
				var none B
				yield(none, fmt.Errorf("data: %s: pass %d gave no batch: the source is empty, or cannot be iterated again", what, pass+1))
				return
			}
		}
	}
}

// Take ends source after its first n batches (0 or more), without asking it for another one; an error counts as a
// batch. If there are fewer, it ends with source.
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
			if !yield(b, err) || taken == n {
				return
			}
		}
	}
}

// failed is a sequence of one error.
func failed[B any](err error) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		var none B
		yield(none, err)
	}
}
