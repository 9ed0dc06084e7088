// Handlers of custom calls, for ffi_test.go: each adds a number to an array of 32-bit floats. They are found by way of
// what package pjrt finds in any library, its table.
#include "../../mpi/ffi.h"
#include "../table.h"

static void *add(ffi_call *call, float number) {
	for (ffi_extension *e = call->extension_start; e; e = e->next)
		if (e->type == FFI_EXTENSION_METADATA) {
			((ffi_metadata_extension *)e)->metadata->version = call->api->version;
			((ffi_metadata_extension *)e)->metadata->traits = 0;
			return NULL;
		}
	ffi_buffer *x = call->args.values[0], *y = call->results.values[0];
	for (int64_t i = 0; i < x->dims[0]; i++) ((float *)y->data)[i] = ((float *)x->data)[i] + number;
	return NULL;
}

static void *add_one(ffi_call *call) { return add(call, 1); }
static void *add_two(ffi_call *call) { return add(call, 2); }

static void *handlers[] = {add_one, add_two};
static lazo_pjrt_table table = {.struct_size = sizeof table, .extension_start = handlers};

const lazo_pjrt_table *GetPjrtApi(void) { return &table; }
