package graphs

import "strings"

var packageNames = map[string]bool{"checkpoint": true, "cost": true, "data": true, "decision": true, "export": true, "files": true, "flaxlike": true, "hlo": true, "images": true, "loop": true, "managed": true, "metrics": true,
	"nn": true, "ops": true, "optim": true, "pjrt": true, "selection": true, "serve": true, "strategies": true, "tables": true, "train": true, "xla": true}

// Package loop, which imports no other, has its own copy.
type pointed interface{ Point() string }

// Point returns an error's text for wrapping, without its package's name and what its method Point omits: errors name
// only the outermost package, and place and action once.
func Point(err error) string {
	if p, ok := err.(pointed); ok {
		return p.Point()
	}
	return Bare(err.Error())
}

func Bare(text string) string {
	if name, rest, ok := strings.Cut(text, ": "); ok && packageNames[name] {
		return rest
	}
	return text
}

// Failure puts a package's name and an action before an error, each once.
type Failure struct {
	Package, What string
	Err           error
}

func (f *Failure) Error() string {
	if f.What == "" {
		return f.Package + ": " + Point(f.Err)
	}
	return f.Package + ": " + f.What + ": " + Point(f.Err)
}

// Point is the wrapped error's: the wrapping one names the action.
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
// the first: package managed gives the body a new root of variables.
const AgainParam = "/lazo.again"
