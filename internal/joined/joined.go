// Package joined records whether this process is a rank of a job, and has a job's errors, for packages that do not
// import dist.
package joined

import (
	"errors"
	"sync/atomic"
)

var (
	ErrDisagree  = errors.New("the ranks disagree")
	ErrKeyExists = errors.New("the key has a value already")
	ErrNoKey     = errors.New("the key has no value")
)

// Alike is a value that must be equal in all processes that run a program.
type Alike struct {
	What string
	// Sums has a checksum per part, equally many in all processes.
	Sums []int64
	// Parts describes the parts in order, if a checksum differs.
	Parts func() []Part
	// Err is wrapped by the run's error, which names the ranks and parts that differ.
	Err error
}

type Part struct {
	Name string // "field \"x\"", after "differs in"
	Is   string
}

type Job interface {
	Rank() int
	Size() int
	// Note adds a text of this process to messages about failures; "" removes it.
	Note(text string)
	// Leave leaves the job at the program's end, with its error or nil.
	Leave(err error) error
}

var now atomic.Pointer[Job]

func Enter(j Job) { now.Store(&j) }

func Forget(j Job) {
	if noted := now.Load(); noted != nil && *noted == j {
		now.CompareAndSwap(noted, nil)
	}
}

func Now() Job {
	if noted := now.Load(); noted != nil {
		return *noted
	}
	return nil
}
