package pjrt

// #include <stdlib.h>
// #ifdef __GLIBC__
// #include <malloc.h>
// static void lazo_keep_heap(int arenas) {
//   mallopt(M_MMAP_MAX, 0);
//   mallopt(M_TRIM_THRESHOLD, -1);
//   mallopt(M_ARENA_MAX, arenas);
// }
// static void lazo_trim_heap(void) { malloc_trim(0); }
// #else
// static void lazo_keep_heap(int arenas) {}
// static void lazo_trim_heap(void) {}
// #endif
import "C"

import (
	"runtime"
	"strings"
	"sync/atomic"
	"time"
)

// KeepHeap has glibc's malloc keep what is freed, for the whole process. XLA on the CPU takes the memory of a program's
// intermediate values anew for each run; glibc gives a block of more than 32 MB back to the kernel when it is freed, so
// that each run has to touch all its pages for the first time again: a fifth of the time of a convolutional network's
// step. The price: the memory of a large program that has gone is kept for the next; what a compiler leaves behind is
// not. Go's own memory is not malloc's.
//
// malloc also gets no more arenas than there are processors, where its own limit is eight times as many: what is free
// in one arena is lost to the others, and the threads of a compiler each take one.
//
// It does nothing where the user has set glibc's variables for any of this, as seen through getenv: MALLOC_MMAP_MAX_,
// MALLOC_TRIM_THRESHOLD_, MALLOC_ARENA_MAX, or GLIBC_TUNABLES with glibc.malloc.
func KeepHeap(getenv func(string) string) {
	for _, name := range []string{"MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX"} {
		if getenv(name) != "" {
			return
		}
	}
	if strings.Contains(getenv("GLIBC_TUNABLES"), "glibc.malloc") {
		return
	}
	C.lazo_keep_heap(C.int(runtime.NumCPU()))
	heapKept.Store(true)
}

var heapKept atomic.Bool

// longCompile is from when on it is worth some milliseconds to give a compiler's memory back.
const longCompile = 100 * time.Millisecond

// afterCompile gives what is free of a kept heap back to the kernel, which it never does by itself: a compiler needs
// tens of megabytes that the program will not need.
func afterCompile(took time.Duration) {
	if took >= longCompile && heapKept.Load() {
		C.lazo_trim_heap()
	}
}
