package pjrt

// #include "run.h"
import "C"
import "unsafe"

// The error is destroyed.
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

// invoke calls a function of the table. args begins with its size.
func invoke[T any](p *Plugin, call string, function C.lazo_function, args *T) error {
	if function == nil {
		return &Error{Call: "PJRT_" + call, Code: Unimplemented, Message: "the plugin's table has no such function"}
	}
	*(*C.size_t)(unsafe.Pointer(args)) = C.size_t(unsafe.Sizeof(*args))
	return p.failure(call, C.lazo_invoke(function, unsafe.Pointer(args)))
}

func goString(text *C.char, size C.size_t) string {
	return string(goBytes(text, size))
}

func goBytes(data *C.char, size C.size_t) []byte {
	if data == nil {
		return nil
	}
	return append([]byte{}, unsafe.Slice((*byte)(unsafe.Pointer(data)), int(size))...)
}

var runCalls = map[C.int]string{
	C.LAZO_FROM_HOST: "Client_BufferFromHostBuffer", C.LAZO_EXECUTE: "LoadedExecutable_Execute",
	C.LAZO_AWAIT: "Event_Await", C.LAZO_DESTROY_BUFFER: "Buffer_Destroy", C.LAZO_DESTROY_EVENT: "Event_Destroy",
	C.LAZO_TO_HOST: "Buffer_ToHostBuffer", C.LAZO_IS_ON_CPU: "Buffer_IsOnCpu", C.LAZO_SIZE: "Buffer_OnDeviceSizeInBytes",
	C.LAZO_REFER: "Buffer_IncreaseExternalReferenceCount", C.LAZO_UNREFER: "Buffer_DecreaseExternalReferenceCount",
	C.LAZO_READY: "Buffer_ReadyEvent", C.LAZO_PLACE: "Buffer_OpaqueDeviceMemoryDataPointer",
}
