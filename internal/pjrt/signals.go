package pjrt

// #include "crash.h"
import "C"

import (
	"bytes"
	"fmt"
	"runtime"
	"unsafe"
)

// WithoutSignals runs f on a thread that blocks signals, as its C threads do, then restores the signal handlers that
// f replaced. Call libraries that may load others this way (docs/decisions/0025).
//
// Fault signals are not blocked: for those, crash.c installs a handler that writes a line, except for a stack
// overflow on XLA's threads.
func WithoutSignals(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var old C.sigset_t
	if C.lazo_block_signals(&old) == 0 {
		defer C.lazo_restore_signals(&old)
	}
	f()
}

func compiling(program []byte, f func()) {
	name := programName(program)
	number := C.lazo_begin((*C.char)(unsafe.Pointer(unsafe.StringData(name))), C.size_t(len(name)))
	defer C.lazo_end(number)
	WithoutSignals(f)
}

func programName(program []byte) string {
	head := program[:min(len(program), 1000)]
	if _, behind, ok := bytes.Cut(head, []byte("module @")); ok {
		if end := bytes.IndexAny(behind, " {\n"); end > 0 {
			return string(behind[:end])
		}
	}
	return fmt.Sprintf("a program of %d bytes", len(program))
}
