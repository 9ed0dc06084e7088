// Package graphs turns the panics of GoMLX's graph functions into errors.
package graphs

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

type Error struct {
	Cause error
	// Where is the innermost line of the user's code, like "package/file.go:12", or "".
	Where string
	// Operation is GoMLX's function that lazo or the user called, like "Reshape", or "".
	Operation string
	Hint      string
}

func (e *Error) Error() string { return e.text(e.Cause.Error()) }

// Point omits the name of a layer's package.
func (e *Error) Point() string { return e.text(Point(e.Cause)) }

func (e *Error) text(text string) string {
	if e.Operation != "" {
		text = e.Operation + ": " + text
	}
	if e.Where != "" {
		text = e.Where + ": " + text
	}
	if e.Hint != "" {
		text += "\n  hint: " + e.Hint
	}
	return text
}

func (e *Error) Unwrap() error { return e.Cause }

// Catch runs f and returns any panic as an [*Error]. Nothing else in lazo recovers panics of graph functions.
func Catch(f func()) (err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		caught := errorOf(v)
		if Where(caught) == "" {
			caught.Where = (&Places{}).find(3) // skips runtime.Callers, find and this function
		}
		if !errors.As(caught.Cause, new(*Error)) {
			if name := calledOfGoMLX(); !named.MatchString(caught.Cause.Error()) && !strings.Contains(caught.Cause.Error(), name) {
				caught.Operation = name
			}
		}
		err = caught
	}()
	f()
	return nil
}

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

// At runs f. If a panic's stack has no line of the user's code, as for a missing gradient, the error gets build's line.
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

// Where returns the line of the outermost [*Error] in err that has one, or "".
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

var named = regexp.MustCompile(`^(?:\w+: )?\w+\(`)

const kept = "a node of another graph is used, perhaps kept from an earlier call: make all nodes again in each call of the function"

var hints = []struct{ words, hint string }{
	{"already visited from", `two layers have one scope: give each a scope of its own with In("name"), or let them share its variables: Shared("name") for the second, or At("name") for both`},
	{"not yet visited from", `Shared is for a name that In was given before, in the same build and at the same scope: where the same code runs the first time and later, use At("name")`},
	{"for which no gradient is defined", "the operation has no gradient: leave it out by graph.StopGradient; for Sort and TopK use the indices and gather the values: graph.Gather has a gradient"},
	{"requested to reuse variable", `the batch has a width different from the first batch, or two layers share a scope: give each layer a scope of its own with In("name")`},
	{"combining nodes from different graphs", kept},
	{"already compiled and can't be used for building", kept},
	{"has already returned or been compiled", kept},
	{"is part of a different graph", kept},
	{"has been finalized already", kept},
	{"match original", "a Reshape keeps the number of elements: the product of the new dimensions is that of the old ones, and one -1 is replaced by the rest"},
	{"Convolution requires Filters and KernelSize", "set Channels and KernelSize; the input needs its spatial axes and channels, such as [batch, height, width, channels]"},
}

var types = regexp.MustCompile(`previous shape=\((\w+)\)(\[[^\]]*\])?, requested shape=\((\w+)\)(\[[^\]]*\])?`)

func hintFor(words string) string {
	if m := types.FindStringSubmatch(words); m != nil && m[1] != m[3] && m[2] == m[4] {
		return "the variable exists with another dtype: under a policy of dtypes, ask for variables in the dtype of the layer's input or in the builder's DType, or build the part in managed.FullPrecision; without a policy, give all batches the dtypes of the first, as float32"
	}
	for _, h := range hints {
		if strings.Contains(words, h.words) {
			return h.hint
		}
	}
	return ""
}
