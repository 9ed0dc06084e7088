// Package abilities has the optional methods that a run of package loop looks for. loop.Stepper, loop.Attendant and
// loop.Job list those that users may write.
package abilities

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// Stateful is a state, like a flaxlike.Model, whose optional methods are on the value of State.
type Stateful interface {
	State() any
}

// As asserts that a state, or a [Stateful]'s value, implements an interface.
func As[I any](state any) (found I, ok bool) {
	if found, ok = state.(I); ok {
		return found, true
	}
	if s, is := state.(Stateful); is {
		found, ok = s.State().(I)
	}
	return found, ok
}

// StateAs is [As] for the state of a loop.Report, loop.Ending or loop.Beginning, or a pointer to it.
func StateAs[I any](of interface {
	State() any
	StatePointer() any
}) (found I, ok bool) {
	if of.StatePointer() == nil {
		return found, false
	}
	if found, ok = As[I](of.State()); !ok {
		found, ok = of.StatePointer().(I)
	}
	return found, ok
}

type Sized interface{ Samples() int }

// InEpoch is a batch that knows its epoch, and maybe whether it is the last.
type InEpoch interface {
	InEpoch() (epoch int64, last, known bool)
}

// Whole is a source that leaves out examples in a training, as those that do not fill a batch.
type Whole[B any] interface {
	WholeFrom(position int64) iter.Seq2[B, error]
}

// LeftOut is a batch that ends its epoch. It counts the epoch's examples in no batch.
type LeftOut interface{ LeftOut() int }

// WholeFrom returns a source's From with all examples, or an error: see [Complete].
func WholeFrom[B any](source interface {
	From(position int64) iter.Seq2[B, error]
}) func(position int64) iter.Seq2[B, error] {
	if w, ok := source.(Whole[B]); ok {
		return w.WholeFrom
	}
	return func(position int64) iter.Seq2[B, error] {
		if batches := source.From(position); batches != nil {
			return Complete(batches)
		}
		return nil
	}
}

// Shuffled is a batch whose set may be shuffled, differently in each epoch.
type Shuffled interface{ Shuffled() bool }

// Complete returns the batches, with an error instead of one with [LeftOut] examples.
func Complete[B any](batches iter.Seq2[B, error]) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		var batch, none B
		last, knows := any(&batch).(LeftOut) // a pointer as an interface costs no allocation
		if !knows {
			batches(yield)
			return
		}
		for b, err := range batches {
			batch = b
			if n := last.LeftOut(); err == nil && n > 0 {
				b, err = none, fmt.Errorf("the batches leave out the examples of the data that do not fill a batch (%d), as in a training: "+
					"take Batches.WholeFrom in place of From or All, or data.Dropped to leave them out", n)
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

type Measurer interface{ Measures() bool }

// Payload is a logged value, maybe an array or a text. Any may wait for a device.
type Payload interface {
	Float() (float64, error)
	Any() (any, error)
}

type Awaiter[S any] interface {
	Await(ctx context.Context, state S) error
}

// Evaluator is a step that accumulates metrics in a state that changes in place.
type Evaluator[S any] interface {
	BeginEvaluation(ctx context.Context, state S) (end func(context.Context) error, err error)
}

// Queued is a state that can be read while batches wait for their steps: see loop.Stepper.
type Queued interface {
	OnRead(f func() error) (remove func(), err error)
}

type Compiler interface {
	// CompilingSince returns when the current compilation began. It is safe for concurrent use.
	CompilingSince() (time.Time, bool)
}

// Resume is the name of the loop.Prepare that checkpoint.Resume makes.
const Resume = "resume"

// Dry is a value of an earlier loop.Prepare of a run that checkpoint.Resume neither resumes nor saves.
type Dry interface{ Dry() }

type Resumed interface {
	// OnDifference calls f for each difference from the saved run, found so far or later.
	OnDifference(f func(difference fmt.Stringer))
	// Entries names the entries by which checkpoints are kept.
	Entries() []string
}

type Saver interface {
	// All processes of a job call SaveNow in the same iteration. The save follows the step in progress.
	SaveNow()
}

// LearningRater is a state whose learning rate can change during training.
type LearningRater interface {
	LearningRate() (float64, error)
	// SetLearningRate returns an error that wraps ErrRateTooSmall for a nonzero rate that would be stored as 0.
	SetLearningRate(rate float64) error
}

var ErrRateTooSmall = errors.New("too small a learning rate")

// Interrupter is an attendant that may request a call outside its schedule. true ends the block.
type Interrupter interface{ Interrupts() bool }

// Observer is an attendant that is called when the run begins another activity, on its goroutine. It must be fast.
type Observer interface {
	At(step int64, what Activity)
}

// Activity is a task, a callback, or waiting for data.
type Activity struct {
	Kind string
	// Name is the task's or callback's ("evaluation val"), "", or "data".
	Name string
	// Of prints schedule and name, as in errors; nil without a schedule.
	Of fmt.Stringer
}

func (a Activity) String() string {
	if a.Of == nil {
		return a.Name
	}
	return a.Of.String()
}

// Watched is a job that ends when a process keeps the others waiting too long, and reports its activity.
type Watched interface {
	At(step int64, doing string)
	// Busy announces a phase for which the others wait up to limit; done ends it.
	Busy(doing string, limit time.Duration) (done func())
	// AgreeOn is the job's Agree; what is for messages.
	AgreeOn(what string, words []int64) error
}

type XLADumper interface {
	DumpXLA(dir string) error
}

// MemoryWriter is checkpoint.Async's writer for a tensor's Write.
type MemoryWriter interface {
	io.Writer
	AvailableBuffer() []byte
}
