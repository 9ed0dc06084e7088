package data

import (
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Map yields f of each batch. f may change the batch: it never receives a view of a set. An error of f replaces its
// batch. Map sets At of batches without a position (Epoch 0, At 0, no Deal) to the rows before.
func Map[A, B any](source iter.Seq2[A, error], f func(A) (B, error)) iter.Seq2[B, error] {
	if err := refuse("map", source == nil, f == nil); err != nil {
		return failed[B](err)
	}
	return mapped(source, func(a A) (B, error) { makeWritable(&a); return f(a) })
}

func mapped[A, B any](source iter.Seq2[A, error], f func(A) (B, error)) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		var in place
		for a, err := range source {
			var b B
			if err == nil {
				in.number(&a)
				b, err = f(a)
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// Filter yields all errors and the batches for which keep returns true.
func Filter[B any](source iter.Seq2[B, error], keep func(B) bool) iter.Seq2[B, error] {
	if err := refuse("filter", source == nil, keep == nil); err != nil {
		return failed[B](err)
	}
	return func(yield func(B, error) bool) {
		for b, err := range source {
			if err == nil && !keep(b) {
				continue
			}
			forgetEnd(&b)
			if !yield(b, err) {
				return
			}
		}
	}
}

// Zip yields join of both sources' first batches, and so on, up to the end of the shorter. Errors replace the pair.
func Zip[A, B, C any](first iter.Seq2[A, error], second iter.Seq2[B, error], join func(A, B) (C, error)) iter.Seq2[C, error] {
	if err := refuse("zip", first == nil || second == nil, join == nil); err != nil {
		return failed[C](err)
	}
	return func(yield func(C, error) bool) {
		next, stop := pull(second)
		defer stop()
		for a, errA := range first {
			b, errB, ok := next()
			if !ok {
				return
			}
			err := errA
			if errB != nil {
				err = errors.Join(errA, errB)
			}
			var c C
			if err == nil {
				makeWritable(&a)
				makeWritable(&b)
				c, err = join(a, b)
				forgetEnd(&c)
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// Interleave yields run batches of each source in turn, until all have ended.
func Interleave[B any](run int, sources ...iter.Seq2[B, error]) iter.Seq2[B, error] {
	sources = slices.Clone(sources)
	if run < 1 {
		return failed[B](fmt.Errorf("data: interleave runs of %d: expected at least 1", run))
	}
	for i, s := range sources {
		if s == nil {
			return failed[B](fmt.Errorf("data: interleave: source %d of %d: %w", i+1, len(sources), errNoSource))
		}
	}
	return func(yield func(B, error) bool) {
		open := make([]func() (B, error, bool), len(sources))
		for i, s := range sources {
			next, stop := pull(s)
			defer stop()
			open[i] = next
		}
		for len(open) > 0 {
			still := open[:0]
			for _, next := range open {
				ended := false
				for range run {
					b, err, ok := next()
					if !ok {
						ended = true
						break
					}
					forgetEnd(&b)
					if !yield(b, err) {
						return
					}
				}
				if !ended {
					still = append(still, next)
				}
			}
			open = still
		}
	}
}

// pull panics if source yields after a false, where iter.Pull2's stop would wait forever.
func pull[B any](source iter.Seq2[B, error]) (next func() (B, error, bool), stop func()) {
	return iter.Pull2(func(yield func(B, error) bool) {
		for b, err := range source {
			if !yield(b, err) {
				return
			}
		}
	})
}

// Peek returns the first batch of source, which a source over an [io.Reader] then lacks. An empty source is an error.
func Peek[B any](source iter.Seq2[B, error]) (B, error) {
	if source != nil {
		for b, err := range source {
			return b, err
		}
	}
	var none B
	if source == nil {
		return none, fmt.Errorf("data: peek: %w", errNoSource)
	}
	return none, errors.New("data: peek: the source is empty")
}

func refuse(what string, noSource, noFunction bool) error {
	switch {
	case noSource:
		return fmt.Errorf("data: %s: %w", what, errNoSource)
	case noFunction:
		return fmt.Errorf("data: %s: there is no function (nil)", what)
	}
	return nil
}
