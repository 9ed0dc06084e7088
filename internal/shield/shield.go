// Package shield calls user code and returns its panics as errors; package graphs does so for graph functions.
package shield

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/lazo-ml/lazo/internal/graphs"
)

// Panic is an error for a panic or a [runtime.Goexit].
type Panic struct {
	Value any
	// Where is the innermost line of user code, "package/file.go:12", or "".
	Where string
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

func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

var ErrNoContext = errors.New("the context is nil, expected one such as context.Background()")

// Context returns an error if ctx is nil or has ended.
func Context(ctx context.Context) error {
	if ctx == nil {
		return ErrNoContext
	}
	return context.Cause(ctx)
}

var ErrGoexit = errors.New("runtime.Goexit was called")

// Call calls f and passes its error to end, even after a panic or Goexit, as a [*Panic]. After a Goexit Call does not
// return.
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

func Caught(value any) *Panic {
	if value == nil {
		value = ErrGoexit
	}
	return &Panic{Value: value, Where: graphs.PanicLine(value), Stack: debug.Stack()}
}

// Do returns f's error, or its panic as a [*Panic].
func Do(f func() error) (err error) {
	Call(f, func(e error) { err = e })
	return err
}

// Run is [Do] on another goroutine, also for a [runtime.Goexit].
func Run(f func() error) error { return <-Start(f) }

func Start(f func() error) <-chan error {
	over := make(chan error, 1)
	go Call(f, func(err error) { over <- err })
	return over
}
