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

// KeepBlocks makes the plugin reuse freed memory blocks of 1 MiB and more.
//
// The kept blocks are at most the largest total in use at once. They are freed if unused, after long compilations, with
// a client, by [FreeBlocks], and before malloc fails. Only the plugin's references to malloc are redirected.
//
// It is [ErrUnimplemented] outside Linux and for plugins without such references.
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

const longCompile = 100 * time.Millisecond

func afterCompile(took time.Duration) {
	if took >= longCompile && blocksKept.Load() {
		trim()
	}
}

// FreeBlocks frees all blocks of [Plugin.KeepBlocks], in microseconds.
func FreeBlocks() { C.lazo_free_blocks(0) }

// It also returns malloc's free memory to the kernel, in milliseconds.
func trim() { C.lazo_free_blocks(1) }

type blockCounts struct {
	Made, Reused     uint64
	Used, Kept, Most int // bytes; Most since the last free
}

func countBlocks() blockCounts {
	c := C.lazo_count_blocks()
	return blockCounts{uint64(c.made), uint64(c.reused), int(c.used), int(c.kept), int(c.most)}
}
