package pjrt

// #include "run.h"
import "C"

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
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

// failure turns an error of the plugin into Go's and destroys it. Null is nil.
func (p *Plugin) failure(call string, raw unsafe.Pointer) error {
	if raw == nil {
		return nil
	}
	e := &Error{Call: "PJRT_" + call, Code: Unknown}
	message := C.lazo_Error_Message_Args{struct_size: C.sizeof_lazo_Error_Message_Args, error: raw}
	C.lazo_invoke(p.api.Error_Message, unsafe.Pointer(&message))
	e.Message = goString(message.message, message.message_size)
	code := C.lazo_Error_GetCode_Args{struct_size: C.sizeof_lazo_Error_GetCode_Args, error: raw}
	if nested := C.lazo_invoke(p.api.Error_GetCode, unsafe.Pointer(&code)); nested == nil {
		e.Code = Code(code.code)
	} else {
		p.dropError(nested)
	}
	p.dropError(raw)
	return e
}

func (p *Plugin) dropError(raw unsafe.Pointer) {
	args := C.lazo_Error_Destroy_Args{struct_size: C.sizeof_lazo_Error_Destroy_Args, error: raw}
	C.lazo_invoke(p.api.Error_Destroy, unsafe.Pointer(&args))
}

// invoke calls a function of the table with its arguments; their first word is their size.
func invoke[T any](p *Plugin, call string, function C.lazo_function, args *T) error {
	if function == nil {
		return &Error{Call: "PJRT_" + call, Code: Unimplemented, Message: "the plugin's table has no such function"}
	}
	*(*C.size_t)(unsafe.Pointer(args)) = C.size_t(unsafe.Sizeof(*args))
	return p.failure(call, C.lazo_invoke(function, unsafe.Pointer(args)))
}

// goString copies a text that the plugin gave with its length.
func goString(text *C.char, size C.size_t) string {
	return string(goBytes(text, size))
}

func goBytes(data *C.char, size C.size_t) []byte {
	if data == nil {
		return nil
	}
	return append([]byte{}, unsafe.Slice((*byte)(unsafe.Pointer(data)), int(size))...)
}

// runCalls names the functions that run.c calls.
var runCalls = map[C.int]string{
	C.LAZO_FROM_HOST: "Client_BufferFromHostBuffer", C.LAZO_EXECUTE: "LoadedExecutable_Execute",
	C.LAZO_AWAIT: "Event_Await", C.LAZO_DESTROY_BUFFER: "Buffer_Destroy", C.LAZO_DESTROY_EVENT: "Event_Destroy",
	C.LAZO_TO_HOST: "Buffer_ToHostBuffer", C.LAZO_IS_ON_CPU: "Buffer_IsOnCpu", C.LAZO_SIZE: "Buffer_OnDeviceSizeInBytes",
	C.LAZO_REFER: "Buffer_IncreaseExternalReferenceCount", C.LAZO_UNREFER: "Buffer_DecreaseExternalReferenceCount",
	C.LAZO_READY: "Buffer_ReadyEvent", C.LAZO_PLACE: "Buffer_OpaqueDeviceMemoryDataPointer",
}
