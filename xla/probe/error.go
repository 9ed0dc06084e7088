package probe

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/lazo-ml/lazo/internal/child"
	"github.com/lazo-ml/lazo/xla/pjrt"
)

// Kinds of failure. [Error.Kind] is one of these, [pjrt.ErrNotFound],
// [pjrt.ErrOutOfMemory] or [pjrt.ErrABI].
var (
	// ErrDamaged: the file is no working PJRT plugin for this machine.
	ErrDamaged = errors.New("the plugin is damaged or made for another machine")
	// ErrNoDevice: the plugin loads, but finds no device that computes.
	ErrNoDevice = errors.New("the plugin loads but gives no usable device")
	// ErrTimeout: no answer before the deadline.
	ErrTimeout = errors.New("the plugin did not answer in time")
	// ErrFlags: the plugin works, but not with what the variable XLA_FLAGS says.
	ErrFlags = errors.New("the plugin does not take these XLA_FLAGS")
	// ErrUnknown: the check itself could not be made.
	ErrUnknown = errors.New("the plugin could not be checked")
)

// Stage is how far a check came.
type Stage string

// The stages in their order.
const (
	StageStart  Stage = "start"  // starting the child
	StageLoad   Stage = "load"   // loading the library, reading its API version
	StageClient Stage = "client" // starting the plugin, making a client
	StageRun    Stage = "run"    // computing on the first device
)

// Error says at which stage a plugin failed and why. It matches its Kind and
// what Cause wraps, among others pjrt's sentinels and [*pjrt.ABIError].
type Error struct {
	Path  string
	Stage Stage
	Kind  error
	Cause error
	// Stderr is the end of what the plugin printed, at most 2 KB.
	Stderr string
}

func (e *Error) Error() string {
	text := fmt.Sprintf("probe: %s: %v", e.Path, e.Kind)
	if cause := e.Cause.Error(); cause != e.Kind.Error() {
		text += fmt.Sprintf(" (%s): %s", e.Stage, cause)
	}
	if e.Stderr != "" {
		text += "\nlast output of the plugin:\n" + e.Stderr
	}
	return text
}

// Unwrap gives Kind and Cause to errors.Is and errors.As.
func (e *Error) Unwrap() []error { return []error{e.Kind, e.Cause} }

// failure is an error on its way from the child to the parent.
type failure struct {
	Code    string // key of causes, "" if none fits
	Text    string
	Version *pjrt.Version // with code "abi"
}

// causes are the errors that keep their identity on the way.
var causes = []struct {
	code string
	err  error
	kind error
}{
	{"not-found", pjrt.ErrNotFound, pjrt.ErrNotFound},
	{"not-loadable", pjrt.ErrNotLoadable, ErrDamaged},
	{"no-symbol", pjrt.ErrNoSymbol, ErrDamaged},
	{"no-table", pjrt.ErrNoTable, ErrDamaged},
	{"abi", pjrt.ErrABI, pjrt.ErrABI},
	{"no-memory", pjrt.ErrOutOfMemory, pjrt.ErrOutOfMemory},
	{"no-device", ErrNoDevice, ErrNoDevice},
}

func newFailure(err error) *failure {
	f := &failure{Text: cut(err.Error())}
	for _, c := range causes {
		if errors.Is(err, c.err) {
			f.Code = c.code
		}
	}
	if abi := (*pjrt.ABIError)(nil); errors.As(err, &abi) {
		f.Version = &abi.Got
	}
	return f
}

// fill completes e with what the child said.
func (f *failure) fill(e *Error) {
	text := strings.TrimPrefix(f.Text, "pjrt: "+e.Path+": ")
	e.Kind, e.Cause = ErrDamaged, errors.New(text)
	for _, c := range causes {
		if c.code != f.Code {
			continue
		}
		e.Kind, e.Cause = c.kind, &remote{text: strings.TrimPrefix(text, c.kind.Error()+": "), is: c.err}
		if f.Version != nil {
			e.Cause = &pjrt.ABIError{Path: e.Path, Got: *f.Version}
		}
	}
}

// remote is an error of the child: its text, and the sentinel that it matched.
type remote struct {
	text string
	is   error
}

func (r *remote) Error() string        { return r.text }
func (r *remote) Is(target error) bool { return target == r.is }

// noMemory are the last words of a process that had no more memory: of Go's runtime, of cgo, of XLA.
var noMemory = regexp.MustCompile(`(?i)out of memory|failed to reserve|cannot allocate memory|bad_alloc|pthread_create failed|thread \S* ?creation|Resource temporarily unavailable`)

func cut(text string) string {
	if len(text) > child.TextLimit {
		return strings.ToValidUTF8(text[:child.TextLimit], "") + " …"
	}
	return text
}
