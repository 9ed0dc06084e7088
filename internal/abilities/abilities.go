// Package abilities has the optional methods by which a run of package loop asks a state, a step, a batch, a callback
// or a job for more than it must have. A value needs the methods alone, so users do not import this package: the
// comments of loop.Stepper, loop.State, loop.Attendant and loop.Job list the methods.
package abilities

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// Stateful is a state that has its optional methods not itself, but on another value, such as a flaxlike.Model.
type Stateful interface {
	// State returns the value with the methods.
	State() any
}

// As asserts that a state, or the value that it returns as a [Stateful], implements an interface.
func As[I any](state any) (found I, ok bool) {
	if found, ok = state.(I); ok {
		return found, true
	}
	if s, is := state.(Stateful); is {
		found, ok = s.State().(I)
	}
	return found, ok
}

// Sized is a batch that knows how many examples it holds.
type Sized interface{ Samples() int }

// InEpoch is a batch that knows its epoch, and may know whether it is the last one of it.
type InEpoch interface {
	InEpoch() (epoch int64, last, known bool)
}

// Whole is a source that leaves out examples in a training, as those that do not fill a batch. WholeFrom is its From
// without this.
type Whole[B any] interface {
	WholeFrom(position int64) iter.Seq2[B, error]
}

// Measurer is a step that may train nothing. A run that has no other steps reads all examples: see [Whole].
type Measurer interface{ Measures() bool }

// Payload is a logged value that may be more than a number, such as an array or a text.
type Payload interface {
	Float() (float64, error)
	// Any is the value. It may wait for a device.
	Any() (any, error)
}

// Awaiter is a step that may still be running when its method has returned. Await waits for all steps that were begun
// on the state and returns the error of one that failed.
type Awaiter[S any] interface {
	Await(ctx context.Context, state S) error
}

// Evaluator is a step that gathers metrics in a state that changes in place. BeginEvaluation empties those of this step
// before the first batch of an evaluation. end is called after the last batch, however the evaluation ended, and puts
// back what had been gathered before.
type Evaluator[S any] interface {
	BeginEvaluation(ctx context.Context, state S) (end func(context.Context) error, err error)
}

// Queued is a state that can be read while batches of a run wait for their steps.
type Queued interface {
	// OnRead gives the state a function that it calls before each time that it is read. The state returns an error of
	// it in place of what was to be read. Before it adds f, OnRead calls the functions that it was given earlier, and
	// returns their error. remove takes f away again.
	OnRead(f func() error) (remove func(), err error)
}

// Compiler is a state whose steps are compiled when they first meet a shape of batch.
type Compiler interface {
	// CompilingSince is when the compilation that is going on began, false if there is none. Any goroutine may ask.
	CompilingSince() (time.Time, bool)
}

// Resume is the name of the loop.Prepare that checkpoint.Resume makes.
const Resume = "resume"

// Resumed is a value that the loop.Prepare of checkpoint.Resume returns for one run.
type Resumed interface {
	// OnDifference calls f for each difference from the saved run: for those found so far at once, and for later ones
	// when they are found.
	OnDifference(f func(difference fmt.Stringer))
	// Entries are the names of the entries by which checkpoints are kept.
	Entries() []string
}

// LearningRater is a state with a learning rate that can be changed during training.
type LearningRater interface {
	LearningRate() (float64, error)
	// SetLearningRate returns an error that wraps ErrRateTooSmall for a rate that is not 0 and would be stored as 0.
	SetLearningRate(rate float64) error
}

// ErrRateTooSmall: the type of the stored learning rate would round it to 0.
var ErrRateTooSmall = errors.New("too small a learning rate")

// Interrupter is what a callback has started and may ask for a call outside of its schedule, as when a save in the
// background has failed. Interrupts is called after each iteration, or before its step where the step may wait for
// others in a block, and must be quick. A result of true ends the block.
type Interrupter interface{ Interrupts() bool }

// Observer is what a callback has started and is called each time that the run begins another activity. It is called on
// the run's goroutine and must be quick.
type Observer interface {
	At(step int64, what Activity)
}

// Activity is what a run is doing: running a task or a callback, or waiting for data.
type Activity struct {
	// Kind is "task" or "callback", and "" for the data and what the run itself does.
	Kind string
	// Name is that of the task or the callback, "" if it has none: "evaluation val"; or "data".
	Name string
	// Of has the schedule and the name as its text, as in errors; nil where there is no schedule.
	Of fmt.Stringer
}

// String is the schedule, and the name if there is one; or "data".
func (a Activity) String() string {
	if a.Of == nil {
		return a.Name
	}
	return a.Of.String()
}

// Watched is a job that ends when one process keeps the others waiting for too long, and says what it was doing.
type Watched interface {
	// At says what the process is about to do, and in which step.
	At(step int64, doing string)
	// Busy announces a phase for which the others are to wait as long as the limit; done ends it.
	Busy(doing string, limit time.Duration) (done func())
	// AgreeOn is the job's Agree. what is agreed on is for the messages of processes that wait there.
	AgreeOn(what string, words []int64) error
}

// XLADumper is a state that can write the programs that its steps were compiled to into a directory.
type XLADumper interface {
	DumpXLA(dir string) error
}

// MemoryWriter is the writer that checkpoint.Async gives to a tensor's Write: bytes that were put into its
// AvailableBuffer (see bytes.Buffer) are written without a copy.
type MemoryWriter interface {
	io.Writer
	AvailableBuffer() []byte
}
