package pjrt

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
)

type Code int

const (
	Cancelled Code = iota + 1
	Unknown
	InvalidArgument
	DeadlineExceeded
	NotFound
	AlreadyExists
	PermissionDenied
	ResourceExhausted
	FailedPrecondition
	Aborted
	OutOfRange
	Unimplemented
	Internal
	Unavailable
	DataLoss
	Unauthenticated
)

var codeNames = []string{
	"CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
	"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
	"UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}

func (c Code) String() string {
	if c < Cancelled || c > Unauthenticated {
		return "CODE_" + strconv.Itoa(int(c))
	}
	return codeNames[c-1]
}

var (
	ErrCancelled       = errors.New("cancelled")
	ErrInvalidArgument = errors.New("invalid argument")
	ErrDeadline        = errors.New("deadline exceeded")
	ErrKeyNotFound     = errors.New("not found")     // also of KeyValueStore.TryGet
	ErrKeyExists       = errors.New("already there") // also of KeyValueStore.Put
	ErrOutOfMemory     = errors.New("out of memory")
	ErrUnimplemented   = errors.New("not implemented by the plugin")
	ErrInternal        = errors.New("internal error of the plugin")
	ErrUnavailable     = errors.New("device or service unavailable")
	ErrDataLoss        = errors.New("data loss")
)

var codeErrors = map[Code]error{
	Cancelled: ErrCancelled, InvalidArgument: ErrInvalidArgument, DeadlineExceeded: ErrDeadline, NotFound: ErrKeyNotFound,
	AlreadyExists:     ErrKeyExists,
	ResourceExhausted: ErrOutOfMemory, Unimplemented: ErrUnimplemented, Internal: ErrInternal, Unavailable: ErrUnavailable,
	DataLoss: ErrDataLoss,
}

var (
	// ErrClosed reports a use after the Close of a value or its client.
	ErrClosed = errors.New("closed")
	// ErrBusy reports a buffer in use that a run replaces, or a Call that is running.
	ErrBusy         = errors.New("in use by another call")
	ErrHandlerTaken = errors.New("another handler was registered under this name")
)

// errors.Is matches the sentinel of its code, like [ErrOutOfMemory].
type Error struct {
	Call    string // like "PJRT_Client_Compile"
	Code    Code
	Message string
}

func (e *Error) Error() string {
	return fmt.Sprintf("pjrt: %s: %v: %s", e.Call, e.Code, e.Message)
}

// DiskFull reports a full disk, like a compiler's temporary folder. CUDA then has the code of out-of-memory.
func (e *Error) DiskFull() bool { return strings.Contains(e.Message, "No space left on device") }

func (e *Error) Is(target error) bool {
	if e.DiskFull() {
		return target == syscall.ENOSPC
	}
	kind, known := codeErrors[e.Code]
	return known && kind == target
}

type failedWork struct {
	what string
	err  error
}

func during(err error, format string, args ...any) error {
	return &failedWork{fmt.Sprintf(format, args...), err}
}

func (f *failedWork) Error() string {
	return "pjrt: " + f.what + ": " + strings.TrimPrefix(f.err.Error(), "pjrt: ")
}

func (f *failedWork) Unwrap() error { return f.err }

func firstError(errs ...error) error { return cmp.Or(errs...) }

func isClosed(err error) bool { return errors.Is(err, ErrClosed) }
