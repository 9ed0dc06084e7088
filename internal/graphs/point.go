package graphs

import "strings"

// packageNames are lazo's packages; the errors of each begin with its name.
var packageNames = map[string]bool{"checkpoint": true, "cost": true, "data": true, "export": true, "flaxlike": true, "hlo": true, "loop": true, "managed": true, "metrics": true,
	"nn": true, "ops": true, "optim": true, "pjrt": true, "serve": true, "strategies": true, "train": true, "xla": true}

// pointed is an error that can say its point. Package loop, which knows no other, has a pointed of its own for the same
// method.
type pointed interface{ Point() string }

// Point is the text of an error for one that wraps it and has a package's name and what was being done already: without
// the name of the package that it comes from, and, where it has a method Point, without what that leaves out. Each
// package that wraps another's error uses it, so that a message has one package's name, the outermost, and the place
// and the work once.
func Point(err error) string {
	if p, ok := err.(pointed); ok {
		return p.Point()
	}
	return Bare(err.Error())
}

// Bare is a message without the name of lazo's package that it begins with.
func Bare(text string) string {
	if name, rest, ok := strings.Cut(text, ": "); ok && packageNames[name] {
		return rest
	}
	return text
}

// Failure is an error with the name of a package and of what was being done before it, each once.
type Failure struct {
	Package, What string // What may be ""
	Err           error
}

func (f *Failure) Error() string {
	if f.What == "" {
		return f.Package + ": " + Point(f.Err)
	}
	return f.Package + ": " + f.What + ": " + Point(f.Err)
}

// Point is that of the wrapped error: what wraps the failure says what was being done.
func (f *Failure) Point() string { return Point(f.Err) }

func (f *Failure) Unwrap() error { return f.Err }

// Inner is an error to be wrapped, by %w, behind the name of a package and what was being done: its text is its
// [Point].
func Inner(err error) error {
	if err == nil {
		return nil
	}
	return inner{err}
}

type inner struct{ err error }

func (i inner) Error() string { return Point(i.err) }
func (i inner) Point() string { return Point(i.err) }
func (i inner) Unwrap() error { return i.err }

// AgainParam is where GoMLX's parameters of a graph have a func() (done func()), which package ops calls around each
// call of a body but the first: package managed gives the body a new root of the model's variables.
const AgainParam = "/lazo.again"
