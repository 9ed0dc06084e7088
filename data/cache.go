package data

import (
	"fmt"
	"iter"
	"sync"
)

// Cache keeps the batches of the first complete pass without an error in memory, uncopied. Put it before a random
// augmentation. It is safe for concurrent use if source is.
func Cache[B any](source iter.Seq2[B, error]) iter.Seq2[B, error] {
	if source == nil {
		return failed[B](fmt.Errorf("data: cache: %w", errNoSource))
	}
	var mu sync.Mutex
	var kept []B
	whole := false
	return func(yield func(B, error) bool) {
		mu.Lock()
		batches, have := kept, whole
		mu.Unlock()
		if have {
			for _, b := range batches {
				if !yield(b, nil) {
					return
				}
			}
			return
		}
		clean := true
		for b, err := range source {
			if clean = clean && err == nil; clean {
				batches = append(batches, b)
			}
			if !yield(b, err) {
				return
			}
		}
		if clean {
			mu.Lock()
			kept, whole = batches, true
			mu.Unlock()
		}
	}
}
