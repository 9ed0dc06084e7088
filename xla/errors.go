package xla

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/backends/notimplemented"

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
	ErrPluginInsecure = install.ErrUnsafe
	ErrABI            = pjrt.ErrABI
	ErrNoDevice       = probe.ErrNoDevice
	ErrTimeout        = probe.ErrTimeout
)

// What can happen while programs are compiled and run. An [*Error] matches the
// one that fits, if any.
var (
	// ErrOutOfMemory: the device or the host had no room. A smaller batch may fit.
	ErrOutOfMemory = errors.New("out of memory")
	// ErrDeviceLost: the device stopped answering. What was on it is gone; open
	// a new runtime, or a new process, and restore.
	ErrDeviceLost = errors.New("device lost")
	// ErrUnimplemented: the backend or the device lacks the operation.
	ErrUnimplemented = errors.New("operation not implemented")
	// ErrClosed: the runtime was used after Close.
	ErrClosed = errors.New("xla: the runtime is closed")
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
	}
	return text.String()
}

// Is makes errors.Is(err, ErrPluginNotFound) hold.
func (e *NotFoundError) Is(target error) bool { return target == ErrPluginNotFound }

// Code is PJRT's status code, the same as Abseil's and gRPC's.
type Code = pjrt.Code

// Error is a failure that PJRT reported. It matches [ErrOutOfMemory],
// [ErrDeviceLost] or [ErrUnimplemented] where one of them fits.
type Error struct {
	Code    Code
	Message string // PJRT's own words, at most 2 KB
	Context string // what was being done, "" if not known
	Err     error  // the error as it came
}

func (e *Error) Error() string {
	text := "xla: "
	if e.Context != "" {
		text += e.Context + ": "
	}
	if kind := e.kind(); kind != nil {
		text += kind.Error() + ": "
	}
	return text + e.Code.String() + ": " + e.Message
}

// Unwrap gives the error as it came.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is hold for the sentinel that fits.
func (e *Error) Is(target error) bool { return target != nil && target == e.kind() }

// Some failures arrive as INTERNAL: the CPU plugin words a lack of memory, CUDA gives the driver's
// name for them.
var (
	memoryNames = []string{"Out of memory allocating", "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"}
	lostNames   = []string{
		"CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_ECC_UNCORRECTABLE",
		"CUDA_ERROR_HARDWARE_STACK_ERROR", "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA_ERROR_CONTEXT_IS_DESTROYED",
	}
)

func (e *Error) kind() error {
	named := func(names []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(e.Message, name) })
	}
	switch {
	case e.Code == pjrt.ResourceExhausted || named(memoryNames):
		return ErrOutOfMemory
	case e.Code == pjrt.Unavailable || e.Code == pjrt.DataLoss || named(lostNames):
		return ErrDeviceLost
	case e.Code == pjrt.Unimplemented:
		return ErrUnimplemented
	}
	return nil
}

const messageLimit = 2 << 10

// WrapError turns an error that came out of GoMLX or the binding into a typed one: an [*Error] for what PJRT reported,
// one that matches [ErrUnimplemented] for an operation that the backend lacks, [ErrClosed] for what was closed. Any other
// error, and nil, comes back as it is; so does an error that was wrapped before.
func WrapError(err error) error {
	if err == nil || errors.As(err, new(*Error)) || errors.Is(err, ErrUnimplemented) || errors.Is(err, ErrClosed) {
		return err
	}
	var reported *pjrt.Error
	switch {
	case errors.Is(err, notimplemented.NotImplementedError):
		return fmt.Errorf("xla: %w: %w", ErrUnimplemented, err)
	case errors.Is(err, pjrt.ErrClosed):
		return fmt.Errorf("%w: %w", ErrClosed, err)
	case !errors.As(err, &reported):
		return err
	}
	what, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "pjrt: "), fmt.Sprintf(": %v: ", reported.Code))
	message := reported.Message
	if len(message) > messageLimit {
		message = strings.ToValidUTF8(message[:messageLimit], "") + " …"
	}
	return &Error{Code: reported.Code, Message: message, Context: what, Err: err}
}
