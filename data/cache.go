package data

import (
	"fmt"
	"iter"
	"sync"
)

// Cache keeps the batches of the first whole pass over source in memory, and gives these in each later one: for a
// source that is slow and fits. A pass that was stopped or had an error is not kept, and the next one asks source
// again.
//
// Batches are passed on as they are, not copied: a change of one is seen in all passes. So the cache belongs before a
// random augmentation, which is to differ between passes. Safe for concurrent use if source is.
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
