package loop

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrStop is returned by a task or callback to end the run after the present turn. The state and logs that a task
// returns with it are used, the other tasks and callbacks of the turn still run, and [Loop.Run] returns no error.
var ErrStop = errors.New("stop")

// ErrPause is an [ErrStop] that ends this run and not the training: a run resumed from there makes further turns,
// whereas one that was stopped otherwise stays ended (see [Ended]). callbacks.TimeLimit uses it.
var ErrPause error = pause{}

type pause struct{}

func (pause) Error() string { return ErrStop.Error() }
func (pause) Unwrap() error { return ErrStop }

// ErrNoFunction: a task, a callback or an option was given no function to call.
var ErrNoFunction = errors.New("no function given")

var errNoSchedule = errors.New("no schedule given; where it is never to be due, say Never")

var errGoexit = errors.New("runtime.Goexit was called")

func isStop(err error) bool { return errors.Is(err, ErrStop) }

// PanicError is the error for a panic, or a call of [runtime.Goexit], in a task, a callback or the data.
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

// Unwrap is the panic's value if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Shield calls f on another goroutine, waits for it, and returns its error. A panic or a [runtime.Goexit] becomes a
// [*PanicError].
func Shield(f func() error) error { return <-startShielded(f) }

// startShielded is Shield without the wait.
func startShielded(f func() error) <-chan error {
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

// caught is the error for the result of recover, which is nil after a Goexit.
func caught(value any) *PanicError {
	if value == nil {
		value = errGoexit
	}
	return &PanicError{Value: value, Stack: debug.Stack()}
}

// scheduleFault is a panic of the function of [When]. The run does not note which schedule it is asking, because that
// would cost time in each turn, so the panic carries the name.
type scheduleFault struct {
	schedule string
	*PanicError
}

func (f *scheduleFault) Error() string { return "schedule " + f.schedule + ": " + f.PanicError.Error() }

// Reason is why a run ended.
type Reason int

const (
	// DataEnded: there were no more batches.
	DataEnded Reason = iota
	// UntilReached: the period of [Until] is over.
	UntilReached
	// Stopped: a task or callback returned [ErrStop].
	Stopped
	// Cancelled: the context ended; the error of the run wraps its cause.
	Cancelled
	// Failed: the run returned another error.
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
