package loop

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrStop is returned by a task or callback to end the run after the present turn. What the task returned beside it
// counts, the other tasks and callbacks of the turn still run, and [Loop.Run] returns no error.
var ErrStop = errors.New("stop")

// ErrPause is an [ErrStop] that ends this run and not the training: one that goes on from there makes further turns, where
// one that was stopped otherwise stays ended (see runs.Start). It is that of callbacks.TimeLimit.
var ErrPause error = pause{}

type pause struct{}

func (pause) Error() string { return ErrStop.Error() }
func (pause) Unwrap() error { return ErrStop }

// ErrNoFunction: a task, a callback or an option was given no function to call.
var ErrNoFunction = errors.New("no function given")

var errNoSchedule = errors.New("no schedule given; where it is never to be due, say Never")

var errGoexit = errors.New("runtime.Goexit was called")

func isStop(err error) bool { return errors.Is(err, ErrStop) }

// PanicError is a panic of a task, a callback or the data, made an error; or a call of [runtime.Goexit] there.
type PanicError struct {
	Value any
	// Stack is the stack of the goroutine at the panic.
	Stack []byte
}

func (e *PanicError) Error() string {
	if e.Value == errGoexit {
		return errGoexit.Error()
	}
	return fmt.Sprintf("panic: %v", e.Value)
}

// Unwrap gives the panic's value where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Shield calls f and makes a panic of it a [*PanicError]; a [runtime.Goexit] too, for which f gets a goroutine of its own.
func Shield(f func() error) error { return <-begun(f) }

// begun is Shield without the wait.
func begun(f func() error) <-chan error {
	over := make(chan error, 1)
	go func() {
		var err error
		returned := false
		defer func() {
			if !returned {
				err = caught(recover())
			}
			over <- err
		}()
		err = f()
		returned = true
	}()
	return over
}

// caught is the error of what recover gave; that is nil for a Goexit.
func caught(value any) *PanicError {
	if value == nil {
		value = errGoexit
	}
	return &PanicError{Value: value, Stack: debug.Stack()}
}

// askFault is the panic of a function that says when something is due ([When]). The run does not note whose schedule it
// asks, because that would cost each turn; so the panic itself takes the name along.
type askFault struct {
	schedule string
	*PanicError
}

func (f *askFault) Error() string { return "schedule " + f.schedule + ": " + f.PanicError.Error() }

// Reason is why a run ended.
type Reason int

const (
	// DataEnded: there were no more batches.
	DataEnded Reason = iota
	// UntilReached: the period of [Until] is over.
	UntilReached
	// Stopped: a task or callback returned [ErrStop].
	Stopped
	// Cancelled: the context ended; the error wraps its cause.
	Cancelled
	// Failed: the error says what went wrong.
	Failed
)

func (r Reason) String() string {
	switch r {
	case DataEnded:
		return "data ended"
	case UntilReached:
		return "until reached"
	case Stopped:
		return "stopped"
	case Cancelled:
		return "cancelled"
	case Failed:
		return "failed"
	}
	return fmt.Sprintf("Reason(%d)", int(r))
}
