// Package ahead counts the goroutines on which package data makes batches ahead of a run, so that a run asks on which
// goroutine its state is read only while there are some.
package ahead

import "sync/atomic"

var running atomic.Int64

// Begin is called before such a goroutine starts, and End when it ends.
func Begin() { running.Add(1) }

// End is called once for each Begin.
func End() { running.Add(-1) }

// Running reports whether there are such goroutines in the process.
func Running() bool { return running.Load() > 0 }
