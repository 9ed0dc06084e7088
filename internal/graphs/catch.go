// Package graphs stands between lazo and GoMLX's graph functions, which report errors by panics.
package graphs

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
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

func (e *Error) Error() string { return e.text(e.Cause.Error()) }

// Point leaves out the package of a layer.
func (e *Error) Point() string { return e.text(Point(e.Cause)) }

func (e *Error) text(text string) string {
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

const kept = "a node of another graph is used, perhaps kept from an earlier call: make all nodes anew in each call of the function"

// hints say what to do where GoMLX's words do not. They are looked for in the words; the mistakes behind them are
// common.
var hints = []struct{ words, hint string }{
	{"already visited from", `two layers have one scope: give each a scope of its own with In("name"), or say that they share its variables: Shared("name") for the second, or At("name") for both`},
	{"not yet visited from", `Shared is for a name that In was given before, in the same build and at the same scope: where the same code runs the first time and later, say At("name")`},
	{"for which no gradient is defined", "the operation has no gradient: leave it out by graph.StopGradient; of Sort and TopK take the places and gather the values: graph.Gather has one"},
	{"requested to reuse variable", `the batch has another width than the first one had, or two layers share a scope: give each layer a scope of its own with In("name")`},
	{"combining nodes from different graphs", kept},
	{"already compiled and can't be used for building", kept},
	{"has already returned or been compiled", kept},
	{"is part of a different graph", kept},
	{"has been finalized already", kept},
	{"Convolution requires Filters and KernelSize", "set Channels and KernelSize; the input needs its spatial axes and channels, such as [batch, height, width, channels]"},
}

// types finds a variable that is asked for in another type, but in the shape that it has.
var types = regexp.MustCompile(`previous shape=\((\w+)\)(\[[^\]]*\])?, requested shape=\((\w+)\)(\[[^\]]*\])?`)

func hintFor(words string) string {
	if m := types.FindStringSubmatch(words); m != nil && m[1] != m[3] && m[2] == m[4] {
		return "the variable is there in another type: under a policy of number types, ask for variables in the type of the layer's input or in the builder's DType, or build the part in managed.FullPrecision; without one, give all batches the types of the first, as float32"
	}
	for _, h := range hints {
		if strings.Contains(words, h.words) {
			return h.hint
		}
	}
	return ""
}
