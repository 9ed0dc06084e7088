// The first fields of PJRT's C API table, declared by hand: enough to ask a
// library which version it speaks. Every version of the API keeps them in this
// place; header_test.go holds them against the published header.
#ifndef LAZO_PJRT_TABLE_H_
#define LAZO_PJRT_TABLE_H_

#include <stddef.h>

typedef struct {
	size_t struct_size;
	void *extension_start;
	int major_version;
	int minor_version;
} lazo_pjrt_version;

typedef struct {
	size_t struct_size;
	void *extension_start;
	lazo_pjrt_version version;
} lazo_pjrt_table;

typedef const lazo_pjrt_table *(*lazo_get_pjrt_api)(void);

#endif
