// Package graphs stands between lazo and GoMLX's graph functions, which report errors by panics.
package graphs

import (
	"fmt"
	"runtime"
	"strings"
)

// Error is a panic of a graph function, made an error.
type Error struct {
	// Cause is what the function panicked with.
	Cause error
	// Where is the innermost line of the caller's own code, as file:line, empty if there is none on the stack.
	Where string
}

func (e *Error) Error() string {
	if e.Where == "" {
		return e.Cause.Error()
	}
	return e.Where + ": " + e.Cause.Error()
}

func (e *Error) Unwrap() error { return e.Cause }

// Catch runs f and turns a panic of any kind into an [*Error]. It is the one place of lazo that recovers the panics
// of graph functions.
func Catch(f func()) (err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		cause, ok := v.(error)
		if !ok {
			cause = fmt.Errorf("%v", v)
		}
		err = &Error{Cause: cause, Where: where()}
	}()
	f()
	return nil
}

// where finds the innermost frame of the panicking stack that is neither Go's, GoMLX's nor lazo's own.
func where() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		if own := isLibrary(f.Function); f.Function != "" && (!own || strings.HasSuffix(f.File, "_test.go")) {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if !more {
			return ""
		}
	}
}

// isLibrary tells the code that a user did not write. Programs inside lazo's own module (examples, bench) count as
// users.
func isLibrary(function string) bool {
	for _, prefix := range []string{"runtime.", "github.com/gomlx/", "reflect."} {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	rest, own := strings.CutPrefix(function, "github.com/lazo-ml/lazo/")
	if !own {
		return false
	}
	return !strings.HasPrefix(rest, "examples/") && !strings.HasPrefix(rest, "bench") && !strings.HasPrefix(rest, "cmd/")
}
