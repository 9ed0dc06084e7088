// Package shield calls code that is not lazo's own, and turns its panics into errors. (The panics of graph functions,
// which have a line of the user's, are those of package graphs; those of a run, which have its place, of package loop.)
package shield

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Panic is a panic that was made an error.
type Panic struct {
	Value any
	// Stack is that of the goroutine at the panic.
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("panicked: %v\n%s", p.Value, p.Stack) }

// Unwrap gives the panic's value where it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// ErrGoexit: a function ended its goroutine.
var ErrGoexit = errors.New("ended its goroutine (runtime.Goexit)")

// Call calls f and gives its error to end, in whatever way f ends: a [*Panic], or [ErrGoexit], after which Call does
// not return.
func Call(f func() error, end func(error)) {
	err := ErrGoexit
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{v, debug.Stack()}
		}
		end(err)
	}()
	err = f()
}

// Do gives f's error, or its panic as a [*Panic].
func Do(f func() error) (err error) {
	Call(f, func(e error) { err = e })
	return err
}
