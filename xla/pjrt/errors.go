package pjrt

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
)

// Code is PJRT's status code, the same as Abseil's and gRPC's.
type Code int

// The codes that PJRT returns.
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

// String gives the code's name in Abseil, "RESOURCE_EXHAUSTED".
func (c Code) String() string {
	if c < Cancelled || c > Unauthenticated {
		return "CODE_" + strconv.Itoa(int(c))
	}
	return codeNames[c-1]
}

// What an [*Error] can match, by its code.
var (
	ErrCancelled       = errors.New("cancelled")
	ErrInvalidArgument = errors.New("invalid argument")
	ErrDeadline        = errors.New("deadline exceeded")
	ErrKeyNotFound     = errors.New("not found")     // also what a KeyValueStore gives for a key that is not there
	ErrKeyExists       = errors.New("already there") // also what a KeyValueStore gives for a key that is put again
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

// What the binding itself refuses.
var (
	// ErrClosed: a thing was used after its Close, or after the Close of its client; or closed twice.
	ErrClosed = errors.New("closed")
	// ErrBusy: a buffer is being replaced by a run, or used while a run is to replace it; or a Call runs already.
	ErrBusy = errors.New("in use by another call")
	// ErrHandlerTaken: the plugin has another handler of that name ([Plugin.RegisterHandler]).
	ErrHandlerTaken = errors.New("another handler was registered under this name")
)

// Error is a failure that the plugin reported. errors.Is tells its kind: see [ErrOutOfMemory] and its neighbours.
type Error struct {
	Call    string // PJRT's function, "PJRT_Client_Compile"
	Code    Code
	Message string // the plugin's words
}

func (e *Error) Error() string {
	return fmt.Sprintf("pjrt: %s: %v: %s", e.Call, e.Code, e.Message)
}

// DiskFull tells whether a disk had no room, as that of the folder for temporary files, which compilers write into.
// CUDA's gives it the code of a lack of memory.
func (e *Error) DiskFull() bool { return strings.Contains(e.Message, "No space left on device") }

// Is makes errors.Is hold for the sentinel of the code, or [syscall.ENOSPC] alone where a disk had no room.
func (e *Error) Is(target error) bool {
	if e.DiskFull() {
		return target == syscall.ENOSPC
	}
	kind, known := codeErrors[e.Code]
	return known && kind == target
}

// failedWork is an error with what was being done.
type failedWork struct {
	what string
	err  error
}

// during says what was being done when err came up. The prefix of the package stays the only one.
func during(err error, format string, args ...any) error {
	return &failedWork{fmt.Sprintf(format, args...), err}
}

func (f *failedWork) Error() string {
	return "pjrt: " + f.what + ": " + strings.TrimPrefix(f.err.Error(), "pjrt: ")
}

func (f *failedWork) Unwrap() error { return f.err }

func firstError(errs ...error) error { return cmp.Or(errs...) }

func isClosed(err error) bool { return errors.Is(err, ErrClosed) }
