package probe

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/lazo-ml/lazo/internal/child"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

// Kinds of failure. [Error.Kind] is one, or [pjrt.ErrNotFound], [pjrt.ErrOutOfMemory] or [pjrt.ErrABI].
var (
	ErrDamaged  = errors.New("the plugin is damaged or made for another machine")
	ErrNoDevice = errors.New("the plugin loads but gives no usable device")
	ErrTimeout  = errors.New("the plugin did not answer in time")
	// ErrFlags reports a plugin that works without XLA_FLAGS.
	ErrFlags   = errors.New("the plugin does not take these XLA_FLAGS")
	ErrUnknown = errors.New("the plugin could not be checked")
)

type Stage string

const (
	StageStart  Stage = "start"
	StageLoad   Stage = "load"
	StageClient Stage = "client"
	StageRun    Stage = "run"
)

// Error reports where and why a plugin failed. It matches Kind and Cause's errors, like [*pjrt.ABIError].
type Error struct {
	Path   string
	Stage  Stage
	Kind   error
	Cause  error
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

func (e *Error) Unwrap() []error { return []error{e.Kind, e.Cause} }

type failure struct {
	Code    string
	Text    string
	Version *pjrt.Version // with code "abi"
}

// causes keep their identity.
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

type remote struct {
	text string
	is   error
}

func (r *remote) Error() string        { return r.text }
func (r *remote) Is(target error) bool { return target == r.is }

var noMemory = regexp.MustCompile(`(?i)out of memory|failed to reserve|cannot allocate memory|bad_alloc|pthread_create failed|thread \S* ?creation|Resource temporarily unavailable`)

func cut(text string) string {
	if len(text) > child.TextLimit {
		return strings.ToValidUTF8(text[:child.TextLimit], "") + " …"
	}
	return text
}
