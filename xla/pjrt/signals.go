package pjrt

// #include "crash.h"
import "C"

import (
	"bytes"
	"fmt"
	"runtime"
	"unsafe"
)

// WithoutSignals runs f on a thread that takes no signals, and so do the threads that f starts in C: they inherit it.
// A plugin must be loaded and its client made like this. XLA's matrix product for the CPU (oneDNN's AVX-512 kernel)
// keeps its stack pointer in memory from malloc for a while; a signal that arrives then, as each tick of Go's CPU
// profiler does, has its frame written there, over other people's memory. Go's own threads take signals on a stack of
// their own, XLA's have none.
//
// Those that a fault raises are taken: the kernel ends a process that blocks one at once, and no handler could say
// anything. Go's handler has no trace of a thread that Go did not make: it lets the signal end the process without a
// word. So one of ours stands before it, which writes a line for such a thread (crash.c). (A stack overflow on a thread
// of XLA's own is silent still: it leaves the handler no stack.)
func WithoutSignals(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var old C.sigset_t
	if C.lazo_block_signals(&old) == 0 {
		defer C.lazo_restore_signals(&old)
	}
	f()
}

// compiling is [WithoutSignals] for a compilation of a program: if a thread of the plugin dies meanwhile, the line that
// the process writes then names it.
func compiling(program []byte, f func()) {
	name := programName(program)
	number := C.lazo_begin((*C.char)(unsafe.Pointer(unsafe.StringData(name))), C.size_t(len(name)))
	defer C.lazo_end(number)
	WithoutSignals(f)
}

// programName is the name that a program in MLIR's text gives its module, or the length of any other.
func programName(program []byte) string {
	head := program[:min(len(program), 1000)]
	if _, behind, ok := bytes.Cut(head, []byte("module @")); ok {
		if end := bytes.IndexAny(behind, " {\n"); end > 0 {
			return string(behind[:end])
		}
	}
	return fmt.Sprintf("a program of %d bytes", len(program))
}
