package pjrt

// #include "ffi.h"
// #include "run.h"
import "C"

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

type handlers struct {
	sync.Mutex
	byTarget map[[2]string]unsafe.Pointer
}

// RegisterHandler registers a C function for custom calls with the target name and API version 4 (typed FFI), for the
// process's life. XLA's threads run it. handler is an XLA_FFI_Handler (xla/ffi/api/c_api.h) that answers metadata
// queries. platform is the plugin's name, "Host" for CPUs.
//
// The same handler may be registered again. Another one is [ErrHandlerTaken]: the plugin would silently keep the first.
// A plugin without the FFI extension is [ErrUnimplemented].
func (p *Plugin) RegisterHandler(name, platform string, handler unsafe.Pointer) error {
	if name == "" || platform == "" || handler == nil {
		return fmt.Errorf("pjrt: register the handler %q for %q: %w: it needs a name, a platform and a function", name, platform, ErrInvalidArgument)
	}
	p.handlers.Lock()
	defer p.handlers.Unlock()
	target := [2]string{name, platform}
	if before, ok := p.handlers.byTarget[target]; ok {
		if before == handler {
			return nil
		}
		return fmt.Errorf("pjrt: register the handler %q for %q: %w", name, platform, ErrHandlerTaken)
	}
	extension := p.extension(C.LAZO_EXTENSION_FFI)
	if extension == nil {
		return fmt.Errorf("pjrt: register the handler %q for %q: %w: %s has no FFI extension", name, platform, ErrUnimplemented, p.path)
	}
	ffi := (*C.lazo_FFI_Extension)(unsafe.Pointer(extension))
	if uintptr(extension.struct_size) < unsafe.Sizeof(*ffi) || ffi.Register_Handler == nil {
		return fmt.Errorf("pjrt: register the handler %q for %q: %w: the FFI extension of %s cannot register handlers (%d bytes, expected %d)",
			name, platform, ErrUnimplemented, p.path, extension.struct_size, unsafe.Sizeof(*ffi))
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	args := C.lazo_FFI_Register_Handler_Args{struct_size: C.LAZO_FFI_REGISTER_SIZE, handler: handler}
	args.target_name, args.target_name_size = pinned(unsafe.StringData(name), len(name), &pin)
	args.platform_name, args.platform_name_size = pinned(unsafe.StringData(platform), len(platform), &pin)
	if err := p.failure("FFI_Register_Handler", C.lazo_invoke(ffi.Register_Handler, unsafe.Pointer(&args))); err != nil {
		return during(err, "register the handler %q for %q", name, platform)
	}
	if p.handlers.byTarget == nil {
		p.handlers.byTarget = map[[2]string]unsafe.Pointer{}
	}
	p.handlers.byTarget[target] = handler
	return nil
}

func (p *Plugin) extension(number C.int) *C.lazo_Extension_Base {
	for e := (*C.lazo_Extension_Base)(p.api.head.extension_start); e != nil; e = e.next {
		if e._type == number {
			return e
		}
	}
	return nil
}
