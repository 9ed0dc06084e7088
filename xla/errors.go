package xla

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/owners"
	"github.com/lazo-ml/lazo/xla/hlo"
	"github.com/lazo-ml/lazo/xla/install"
	"github.com/lazo-ml/lazo/xla/pjrt"
	"github.com/lazo-ml/lazo/xla/probe"
)

// What can be wrong with a plugin. An error of [Open] that is about the plugin
// matches one of these; most are a [*NotFoundError], a [*probe.Error] or a
// [*pjrt.ABIError] as well, which say more.
var (
	ErrPluginNotFound = errors.New("no PJRT plugin found")
	ErrPluginDamaged  = probe.ErrDamaged
	ErrPluginInsecure = owners.ErrUnsafe // others may have written it, or may replace it: docs/security.md
	ErrABI            = pjrt.ErrABI
	ErrNoDevice       = probe.ErrNoDevice
	ErrTimeout        = probe.ErrTimeout
	// ErrFlags: the plugin does not take what XLA_FLAGS says.
	ErrFlags = probe.ErrFlags
)

// What can happen while programs are built, compiled and run. An [*Error] matches the one that fits, if any.
var (
	// ErrOutOfMemory: the device or the host had no room. A smaller batch may fit.
	ErrOutOfMemory = pjrt.ErrOutOfMemory
	// ErrInvalidArgument: an operation does not take operands of these shapes or types, or a run not these inputs.
	ErrInvalidArgument = pjrt.ErrInvalidArgument
	// ErrUnimplemented: the backend or the device lacks the operation.
	ErrUnimplemented = errors.New("operation not implemented")
	// ErrDeviceLost: the device stopped answering. What was on it is gone; open
	// a new runtime, or a new process, and restore.
	ErrDeviceLost = errors.New("device lost")
	// ErrDeadline: something that is waited for, such as another process, did not come in time.
	ErrDeadline = pjrt.ErrDeadline
	// ErrClosed: a runtime, or one of its programs or buffers, was used after its Close.
	ErrClosed = pjrt.ErrClosed
	// ErrBusy: another goroutine uses a value in a way that excludes all others.
	ErrBusy = pjrt.ErrBusy
)

var (
	errClosed        = fmt.Errorf("xla: the runtime is %w", ErrClosed)
	errProgramClosed = fmt.Errorf("xla: the program is %w", ErrClosed)
)

// NotFoundError lists where a plugin was looked for. It matches [ErrPluginNotFound].
type NotFoundError struct {
	Plugin  string   // as asked for
	Tried   []string // every place, in order
	Install string   // the command that installs it, "" if lazo has none
}

func (e *NotFoundError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "xla: %v: %q", ErrPluginNotFound, e.Plugin)
	for _, place := range e.Tried {
		fmt.Fprintf(&text, "\n  tried    %s", place)
	}
	if e.Install != "" {
		fmt.Fprintf(&text, "\n  install  %s", e.Install)
		fmt.Fprintf(&text, "\n  or use the plugin %q: GoMLX's pure-Go backend, slower and with fewer operations", Go)
	} else if pluginName.MatchString(e.Plugin) {
		known := slices.DeleteFunc(install.Kinds(), func(kind string) bool { // what only compiles, and MPI
			return strings.Contains(kind, "_") || !slices.Contains([]string{CPU, CUDA, TPU}, platform(kind))
		})
		fmt.Fprintf(&text, "\n  known    %s, %s, or the path of a library", strings.Join(known, ", "), Go)
	}
	return text.String()
}

// Is makes errors.Is(err, ErrPluginNotFound) hold.
func (e *NotFoundError) Is(target error) bool { return target == ErrPluginNotFound }

// Code is PJRT's status code, the same as Abseil's and gRPC's.
type Code = pjrt.Code

// Error is a failure to build, compile or run a program. It matches [ErrOutOfMemory] or one of its neighbours where one
// fits.
type Error struct {
	// Code is what the plugin reported; 0 where it was not asked. An operation that lazo refuses is an InvalidArgument.
	Code Code
	// Message is the plugin's own words, at most 2 KB, or those of the graph function that failed.
	Message string
	// Context is what was being done, "" if not known.
	Context string
	// Where is the line of the user's own code, as "package/file.go:12", "" if not known.
	Where string
	// Operation and Operands are what could not be built or compiled, "" and none if not known.
	Operation string
	Operands  []shapes.Shape
	// Memory is what a program that found no room needs, "" if not known.
	Memory string
	Err    error // the error as it came
}

func (e *Error) Error() string {
	text := "xla: "
	if e.Context != "" {
		text += e.Context + ": "
	}
	return text + e.said(e.Message)
}

// Point is the message without what was being done, for an error that wraps this one and says that itself.
func (e *Error) Point() string { return e.said(graphs.Bare(e.Message)) }

func (e *Error) said(message string) string {
	text := ""
	if e.Where != "" {
		text = e.Where + ": "
	}
	if e.Code != 0 && !e.refused() {
		if e.Operation != "" {
			text += fmt.Sprintf("%s(%s): ", e.Operation, shapeList(e.Operands))
		}
		if kind := e.kind(); kind != nil {
			text += kind.Error() + ": "
		}
		text += e.Code.String() + ": "
	}
	text += message
	if e.Memory != "" {
		text += "\n" + e.Memory
	}
	return text
}

// Unwrap gives the error as it came.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is hold for the sentinel that fits.
func (e *Error) Is(target error) bool {
	if target == syscall.ENOSPC {
		return e.kind() == errDiskFull
	}
	return target != nil && target == e.kind()
}

// refused tells an operation that did not get as far as the plugin; the message says it all.
func (e *Error) refused() bool { return !errors.As(e.Err, new(*pjrt.Error)) }

func shapeList(list []shapes.Shape) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = s.String()
	}
	return strings.Join(texts, ", ")
}

// Some failures arrive as INTERNAL: the CPU plugin words a lack of memory, CUDA gives the driver's
// name for them.
var (
	memoryNames = []string{"Out of memory allocating", "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"}
	lostNames   = []string{
		"CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_ECC_UNCORRECTABLE",
		"CUDA_ERROR_HARDWARE_STACK_ERROR", "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA_ERROR_CONTEXT_IS_DESTROYED",
	}
)

// errDiskFull is the kind of an error that matches [syscall.ENOSPC].
var errDiskFull = errors.New("a disk is full, probably that of the folder for temporary files, which compilers write into: make room, or set $TMPDIR")

func (e *Error) kind() error {
	named := func(names []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(e.Message, name) })
	}
	var reported *pjrt.Error
	switch {
	case e.Code == 0:
		return nil
	case errors.As(e.Err, &reported) && reported.DiskFull():
		return errDiskFull
	case e.Code == pjrt.ResourceExhausted || named(memoryNames):
		return ErrOutOfMemory
	case e.Code == pjrt.Unavailable || e.Code == pjrt.DataLoss || named(lostNames):
		return ErrDeviceLost
	case e.Code == pjrt.Unimplemented:
		return ErrUnimplemented
	case e.Code == pjrt.InvalidArgument:
		return ErrInvalidArgument
	case e.Code == pjrt.DeadlineExceeded:
		return ErrDeadline
	}
	return nil
}

const messageLimit = 2 << 10

// WrapError turns an error that came out of GoMLX or the binding into an [*Error] with all that is known: what PJRT
// reported, an operation that was refused, a panic of a graph function. Any other error, and nil, comes back as it is;
// so does an error that was wrapped before.
func WrapError(err error) error {
	if err == nil || errors.As(err, new(*Error)) {
		return err
	}
	e := &Error{Where: graphs.Where(err), Err: err}
	var caught *graphs.Error
	var reported *pjrt.Error
	var refused *hlo.Error
	switch {
	case errors.As(err, &reported):
		if errors.As(err, &refused) { // an operation that ran alone
			e.Operation, e.Operands = refused.Operation.String(), refused.Operands
		}
		e.Code, e.Message = reported.Code, strings.TrimSpace(reported.Message)
		e.Context, _, _ = strings.Cut(strings.TrimPrefix(err.Error(), "pjrt: "), fmt.Sprintf(": %v: ", reported.Code))
		if len(e.Message) > messageLimit {
			e.Message = strings.ToValidUTF8(e.Message[:messageLimit], "") + " …"
		}
		return e
	case errors.As(err, &refused):
		e.Code, e.Operation, e.Operands = pjrt.InvalidArgument, refused.Operation.String(), refused.Operands
	case errors.Is(err, notimplemented.NotImplementedError):
		e.Code = pjrt.Unimplemented
	case !errors.As(err, &caught):
		return err
	}
	// The line stands at the front of the message.
	e.Message = strings.Replace(err.Error(), e.Where+": ", "", min(len(e.Where), 1))
	return e
}

// during adds what was being done when err came up. The message has the package's prefix once.
func during(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if errors.Is(err, ErrInputsLost) {
		what += ": " + ErrInputsLost.Error()
	}
	err = WrapError(err)
	var typed *Error
	if !errors.As(err, &typed) {
		return &failedWork{what, err}
	}
	outer := *typed
	outer.Context, outer.Err = what, err
	return &outer
}

// failedWork is an error that says nothing of a program.
type failedWork struct {
	what string
	err  error
}

func (f *failedWork) Error() string {
	return "xla: " + f.what + ": " + strings.TrimPrefix(strings.TrimPrefix(f.err.Error(), "xla: "), "pjrt: ")
}

// Point is the message without what was being done.
func (f *failedWork) Point() string { return graphs.Point(f.err) }

func (f *failedWork) Unwrap() error { return f.err }
