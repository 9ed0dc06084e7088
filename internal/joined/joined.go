// Package joined knows whether this process is one of several of a job, for packages that do not know package dist. It
// is a variable of the process because that is what a rank is: a process.
package joined

import "sync/atomic"

// Job is a job of several processes, as package dist joins one.
type Job interface {
	Rank() int
	Size() int
	// Note has the messages of a job that ends say something of this process; "" takes it back.
	Note(text string)
	// Leave leaves the job at the end of the program, which an error ends unless it is nil.
	Leave(err error) error
}

var now atomic.Pointer[Job]

// Enter notes that this process is one of the job's.
func Enter(j Job) { now.Store(&j) }

// Forget notes that this process has left a job, if it is the one that was noted last.
func Forget(j Job) {
	if noted := now.Load(); noted != nil && *noted == j {
		now.CompareAndSwap(noted, nil)
	}
}

// Now is the job that this process is in, nil if it is in none or alone in it.
func Now() Job {
	if noted := now.Load(); noted != nil {
		return *noted
	}
	return nil
}
