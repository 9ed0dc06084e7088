package pjrt

// #include "blocks.h"
import "C"

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// KeepBlocks has the plugin keep large blocks of memory, of 1 MiB and more, when it frees them, for what it allocates
// next. XLA on the CPU takes the memory of a program's intermediate values and outputs anew for each run; malloc gets a
// large block from the kernel and gives it back when it is freed, so that each run has to touch all its pages for the
// first time: a quarter of the time of a transformer's step.
//
// The price: up to as many bytes are kept as were in use at once in such blocks. A block that nobody takes goes; all
// go after a long compilation, with a client, by [FreeBlocks], and before malloc says that there is no memory. What
// changes are the references of the plugin alone to malloc and its like: other libraries and Go are not concerned.
//
// It fails with [ErrUnimplemented] on other systems than Linux, and where a plugin has no such references: the plugin
// then works as before, more slowly.
func (p *Plugin) KeepBlocks() error {
	switch n := C.lazo_keep_blocks(unsafe.Pointer(p.api.Error_Destroy)); {
	case n > 0:
		blocksKept.Store(true)
		return nil
	case -n == C.int(syscall.ENOSYS), -n == C.int(syscall.ENOENT):
		return fmt.Errorf("pjrt: %s: keep freed blocks of memory: %w", p.path, ErrUnimplemented)
	default:
		return fmt.Errorf("pjrt: %s: keep freed blocks of memory: %w", p.path, syscall.Errno(-n))
	}
}

var blocksKept atomic.Bool

// longCompile is from when on it is worth some milliseconds to give a compiler's memory back.
const longCompile = 100 * time.Millisecond

// afterCompile gives what is free back to the kernel: a compiler needs tens of megabytes that the program will not
// need.
func afterCompile(took time.Duration) {
	if took >= longCompile && blocksKept.Load() {
		trim()
	}
}

// FreeBlocks frees all blocks that are kept ([Plugin.KeepBlocks]). It takes some microseconds.
func FreeBlocks() { C.lazo_free_blocks(0) }

// trim frees them too, and has malloc give what is free to the kernel, which takes milliseconds.
func trim() { C.lazo_free_blocks(1) }

// blockCounts are of blocks of 1 MiB and more.
type blockCounts struct {
	Made, Reused     uint64 // since the start of the process: new ones, and those that had been kept
	Used, Kept, Most int    // bytes: in use and kept now, and the most in use at once since they were last freed
}

func countBlocks() blockCounts {
	c := C.lazo_count_blocks()
	return blockCounts{uint64(c.made), uint64(c.reused), int(c.used), int(c.kept), int(c.most)}
}
