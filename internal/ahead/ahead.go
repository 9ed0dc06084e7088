// Package ahead finds the goroutines that make batches ahead of a run. While there are none, a run does not check on
// which goroutine its state is read.
package ahead

import "sync/atomic"

var running atomic.Int64

func Begin() { running.Add(1) }

func End() { running.Add(-1) }

func Running() bool { return running.Load() > 0 }
