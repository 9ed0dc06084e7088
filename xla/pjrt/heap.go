package pjrt

// #include <stdlib.h>
// #ifdef __GLIBC__
// #include <malloc.h>
// static void lazo_keep_heap(void) {
//   mallopt(M_MMAP_MAX, 0);
//   mallopt(M_TRIM_THRESHOLD, -1);
// }
// #else
// static void lazo_keep_heap(void) {}
// #endif
import "C"

import "strings"

// KeepHeap has glibc's malloc keep what is freed, for the whole process. XLA on the CPU takes the memory of a program's
// intermediate values anew for each run; glibc gives a block of more than 32 MB back to the kernel when it is freed, so that
// each run has to touch all its pages for the first time again: a fifth of the time of a convolutional network's step. The
// price: the memory of a large program that has gone is kept for the next. Go's own memory is not malloc's.
//
// It does nothing where the user has set glibc's variables for either, as seen through getenv: MALLOC_MMAP_MAX_,
// MALLOC_TRIM_THRESHOLD_, or GLIBC_TUNABLES with glibc.malloc.
func KeepHeap(getenv func(string) string) {
	if getenv("MALLOC_MMAP_MAX_") == "" && getenv("MALLOC_TRIM_THRESHOLD_") == "" && !strings.Contains(getenv("GLIBC_TUNABLES"), "glibc.malloc") {
		C.lazo_keep_heap()
	}
}
