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
	"github.com/lazo-ml/lazo/internal/hlo"
	"github.com/lazo-ml/lazo/internal/owners"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/probe"
)

// Errors of [Open]. Their texts name the file, the failed stage, and the plugin's last output. A plugin that does not
// answer in time is a context.DeadlineExceeded.
var (
	ErrPluginNotFound = errors.New("no PJRT plugin found")
	ErrPluginDamaged  = probe.ErrDamaged
	ErrPluginInsecure = owners.ErrUnsafe // others may change or replace it: docs/security.md
	ErrNoDevice       = probe.ErrNoDevice
)

// Errors of programs. An [*Error] matches at most one.
var (
	// ErrOutOfMemory reports too little memory, on the device or the host. A smaller batch may fit.
	ErrOutOfMemory = pjrt.ErrOutOfMemory
	// ErrInvalidArgument reports a wrong shape or dtype.
	ErrInvalidArgument = pjrt.ErrInvalidArgument
	// ErrUnimplemented reports an operation that the backend or device lacks.
	ErrUnimplemented = errors.New("operation not implemented")
	// ErrDeviceLost reports a failed device: open a new runtime or process, and restore.
	ErrDeviceLost = errors.New("device lost")
	// ErrDeadline reports that a process, or another thing awaited, is late.
	ErrDeadline   = pjrt.ErrDeadline
	ErrClosed     = pjrt.ErrClosed
	ErrInputsLost = errors.New("the inputs that the program would have overwritten are lost")
	// ErrBusy reports that another use excludes this one, of a value or of a state of package managed.
	ErrBusy = pjrt.ErrBusy
)

var (
	errClosed        = fmt.Errorf("xla: the runtime is %w", ErrClosed)
	errProgramClosed = fmt.Errorf("xla: the program is %w", ErrClosed)
)

// Error is a failure to build, compile or run a program. It matches the error of [ErrOutOfMemory]'s group that fits.
type Error struct {
	// Code is the plugin's status, a number of Abseil and gRPC; 0 without one, InvalidArgument for an operation that
	// lazo refuses.
	Code pjrt.Code
	// Message is the plugin's, at most 2 KB, or the graph function's.
	Message string
	Context string
	// Where is the line of the user's code, "package/file.go:12", or "".
	Where string
	// Operation and Operands could not be built or compiled, if known.
	Operation string
	Operands  []shapes.Shape
	// Memory is the need of a program that did not fit, or "".
	Memory string
	Err    error
}

func (e *Error) Error() string {
	text := "xla: "
	if e.Context != "" {
		text += e.Context + ": "
	}
	return text + e.said(e.Message)
}

// Point returns the message without Context.
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

func (e *Error) Unwrap() error { return e.Err }

func (e *Error) Is(target error) bool {
	if target == syscall.ENOSPC {
		return e.kind() == errDiskFull
	}
	return target != nil && target == e.kind()
}

func (e *Error) refused() bool { return !errors.As(e.Err, new(*pjrt.Error)) }

func shapeList(list []shapes.Shape) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = s.String()
	}
	return strings.Join(texts, ", ")
}

// Some failures have the code INTERNAL.
var (
	memoryNames = []string{"Out of memory allocating", "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"}
	lostNames   = []string{
		"CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_ECC_UNCORRECTABLE",
		"CUDA_ERROR_HARDWARE_STACK_ERROR", "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA_ERROR_CONTEXT_IS_DESTROYED",
	}
)

var errDiskFull = errors.New("a disk is full, probably that of the folder for temporary files, which compilers write into: free some space, or set $TMPDIR")

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

// WrapError turns PJRT's errors, refused operations and panics of graph functions into an [*Error]. Others stay
// unchanged.
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
		if errors.As(err, &refused) {
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
	e.Message = strings.Replace(err.Error(), e.Where+": ", "", min(len(e.Where), 1))
	return e
}

// during avoids a second "xla: ".
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

type failedWork struct {
	what string
	err  error
}

func (f *failedWork) Error() string {
	return "xla: " + f.what + ": " + strings.TrimPrefix(strings.TrimPrefix(f.err.Error(), "xla: "), "pjrt: ")
}

func (f *failedWork) Point() string { return graphs.Point(f.err) }

func (f *failedWork) Unwrap() error { return f.err }

func located(m *hlo.Module, err error) error {
	err = WrapError(err)
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	if op, ok := m.Locate(e.Message); ok {
		e.Where, e.Operation, e.Operands = op.Where, op.Kind.String(), op.Operands
	}
	return err
}
