// Large blocks of memory that a plugin frees are kept for its next allocations.
#ifndef LAZO_PJRT_BLOCKS_H_
#define LAZO_PJRT_BLOCKS_H_

#include <stddef.h>
#include <stdint.h>

// lazo_keep_blocks has the library that the address lies in allocate and free large blocks by lazo. It gives how many of
// its references to malloc and its like were changed, or the negated number of an error (errno.h): ENOSYS where this
// system is not known, ENOENT where the library has no reference to free, or to nothing that allocates.
int lazo_keep_blocks(const void *address);

// lazo_free_blocks frees all blocks that are kept; with trim it has malloc give what is free to the kernel.
void lazo_free_blocks(int trim);

// Since the start of the process: how many large blocks came from malloc, and how many were kept ones. Now: the bytes in
// use and kept. And the most bytes that were in use at once since the last lazo_free_blocks.
typedef struct {
	uint64_t made, reused;
	size_t used, kept, most;
} lazo_block_counts;

lazo_block_counts lazo_count_blocks(void);

#endif
