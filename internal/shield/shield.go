// Package shield calls code that is not lazo's own, and turns its panics into errors. (The panics of graph functions
// are those of package graphs.)
package shield

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/lazo-ml/lazo/internal/graphs"
)

// Panic is a panic, or a call of [runtime.Goexit], that was made an error.
type Panic struct {
	// Value is what the function panicked with, ErrGoexit if it ended its goroutine.
	Value any
	// Where is the innermost line of the user's own code that was running, as "package/file.go:12"; empty if there is
	// none.
	Where string
	// Stack is that of the goroutine at the panic.
	Stack []byte
}

func (p *Panic) Error() string {
	if p.Value == ErrGoexit {
		return ErrGoexit.Error()
	}
	if p.Where != "" {
		return fmt.Sprintf("panic: %s: %v", p.Where, p.Value)
	}
	return fmt.Sprintf("panic: %v", p.Value)
}

// Unwrap gives the panic's value where it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// ErrNoContext: a function was called without a context.
var ErrNoContext = errors.New("the context is nil, expected one such as context.Background()")

// Context returns why a function that was called with a context cannot begin: the context has ended, or is nil.
func Context(ctx context.Context) error {
	if ctx == nil {
		return ErrNoContext
	}
	return context.Cause(ctx)
}

// ErrGoexit: a function ended its goroutine.
var ErrGoexit = errors.New("runtime.Goexit was called")

// Call calls f and gives its error to end, in whatever way f ends: by a panic or a Goexit it is a [*Panic]. After a
// Goexit Call does not return.
func Call(f func() error, end func(error)) {
	var err error
	returned := false
	defer func() {
		if !returned {
			err = Caught(recover())
		}
		end(err)
	}()
	err = f()
	returned = true
}

// Caught is the error for the result of recover, which is nil after a Goexit.
func Caught(value any) *Panic {
	if value == nil {
		value = ErrGoexit
	}
	return &Panic{Value: value, Where: graphs.PanicLine(value), Stack: debug.Stack()}
}

// Do gives f's error, or its panic as a [*Panic].
func Do(f func() error) (err error) {
	Call(f, func(e error) { err = e })
	return err
}

// Run calls f on another goroutine, waits for it, and returns its error. A panic or a [runtime.Goexit] becomes a
// *Panic.
func Run(f func() error) error { return <-Start(f) }

// Start is Run without the wait.
func Start(f func() error) <-chan error {
	over := make(chan error, 1)
	go Call(f, func(err error) { over <- err })
	return over
}
