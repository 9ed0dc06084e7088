// Package graphs stands between lazo and GoMLX's graph functions, which report errors by panics.
package graphs

import (
	"errors"
	"fmt"
)

// Error is a panic of a graph function, made an error.
type Error struct {
	// Cause is what the function panicked with.
	Cause error
	// Where is the innermost line of the user's own code, as "package/file.go:12"; empty if there is none on the stack,
	// and where the cause names it already.
	Where string
	// Hint is what to do, where the cause does not say it and it is known; else empty.
	Hint string
}

func (e *Error) Error() string {
	text := e.Cause.Error()
	if e.Where != "" {
		text = e.Where + ": " + text
	}
	if e.Hint != "" {
		text += "\n  hint: " + e.Hint
	}
	return text
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
		caught := errorOf(v)
		if Where(caught) == "" {
			caught.Where = (&Places{}).find(3) // behind runtime.Callers, find, this function
		}
		err = caught
	}()
	f()
	return nil
}

// errorOf is a panic as an error, with a hint unless an error in it has had its own.
func errorOf(v any) *Error {
	cause, ok := v.(error)
	if !ok {
		cause = fmt.Errorf("%v", v)
	}
	caught := &Error{Cause: cause}
	if !errors.As(cause, new(*Error)) {
		caught.Hint = hintFor(cause.Error())
	}
	return caught
}

// From runs f, what a part of a library builds that the user made at a line (see [Caller]). A panic under which there
// is no line of the user's own code, up to here, gets that line, which is nearer than that of the outermost call.
func From(line string, f func()) {
	returned := false
	defer func() {
		if returned || line == "" {
			return
		}
		v := recover()
		if v == nil {
			return // a Goexit
		}
		caught := errorOf(v)
		if Where(caught) != "" || (&Places{parts: true}).find(3) != "" {
			panic(v)
		}
		caught.Where = line
		panic(caught)
	}()
	f()
	returned = true
}

// Caller is the innermost line of the user's own code that called Caller's caller, as [Places.Here] has it.
func Caller() string { return (&Places{}).find(3) }

// At runs f. A panic under which there is no line of the user's own code, such as the one for a gradient that does
// not exist, gets the place where the function build is written.
func At(build any, f func()) {
	err := Catch(f)
	if err == nil {
		return
	}
	if caught, ok := errors.AsType[*Error](err); ok && Where(err) == "" {
		caught.Where = lineOf(build)
	}
	panic(err)
}

// Where is the line that the outermost [*Error] in err with a line has; "" if there is none.
func Where(err error) string {
	for {
		var caught *Error
		switch {
		case !errors.As(err, &caught):
			return ""
		case caught.Where != "":
			return caught.Where
		}
		err = caught.Cause
	}
}
