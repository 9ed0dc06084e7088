// Runs of the CPU plugin on the caller's thread.
#ifndef LAZO_PJRT_INLINE_H_
#define LAZO_PJRT_INLINE_H_

#include <stddef.h>

// The plugin runs a program of 1,000 operations and more in a thread of its own, one after the other, unless the caller's
// thread is marked as that of a host callback. PJRT has no option for it. A mark is where a thread has this number: index
// is its library's entry for the loader, null where the library is not known.
typedef struct {
	void *index;
	size_t offset;
	void *(*place)(void *index); // of the calling thread
} lazo_mark;

// lazo_find_mark looks at the code of the library of a known build, by the address of its PJRT_LoadedExecutable_Execute.
lazo_mark lazo_find_mark(const void *execute);

// lazo_change_mark adds to the mark of this thread.
void lazo_change_mark(lazo_mark mark, int by);

#endif
