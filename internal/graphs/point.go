package graphs

import "strings"

// packageNames are lazo's packages. The errors of each begin with its name.
var packageNames = map[string]bool{"checkpoint": true, "cost": true, "data": true, "export": true, "flaxlike": true, "hlo": true, "loop": true, "managed": true, "metrics": true,
	"nn": true, "ops": true, "optim": true, "pjrt": true, "serve": true, "strategies": true, "train": true, "xla": true}

// pointed is an error with a Point. Package loop has its own copy of this interface, because it imports no other.
type pointed interface{ Point() string }

// Point returns the text of an error for wrapping: without the name of its package and without what its method Point
// leaves out. Errors then name only the outermost package, and place and action once.
func Point(err error) string {
	if p, ok := err.(pointed); ok {
		return p.Point()
	}
	return Bare(err.Error())
}

// Bare removes the name of lazo's package from the start of a message.
func Bare(text string) string {
	if name, rest, ok := strings.Cut(text, ": "); ok && packageNames[name] {
		return rest
	}
	return text
}

// Failure is an error with a package's name and an action before it, each once.
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

// Point returns that of the wrapped error, because the wrapping error names the action.
func (f *Failure) Point() string { return Point(f.Err) }

func (f *Failure) Unwrap() error { return f.Err }

// Inner is for wrapping err by %w after a package's name and an action. Its text is its [Point].
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

// AgainParam is the graph parameter for a func() (done func()) that package ops calls around each call of a body but
// the first. Package managed uses it to give the body a new root of the model's variables.
const AgainParam = "/lazo.again"
