// What lazo uses of XLA's foreign function interface, declared by hand after XLA's xla/ffi/api/c_api.h, versions 0.2 and
// 0.3 (the wheels of jaxlib bring it as jaxlib/include/xla/ffi/api/c_api.h). Names are XLA's without XLA_FFI_.
#ifndef LAZO_MPI_FFI_H_
#define LAZO_MPI_FFI_H_

#include <stddef.h>
#include <stdint.h>

enum { FFI_EXTENSION_METADATA = 1, FFI_STAGE_EXECUTE = 3, FFI_BUFFER = 1, FFI_ATTR_ARRAY = 1, FFI_ATTR_SCALAR = 3 };

enum { FFI_INVALID_ARGUMENT = 3, FFI_RESOURCE_EXHAUSTED = 8, FFI_FAILED_PRECONDITION = 9, FFI_INTERNAL = 13 };

enum {
	FFI_PRED = 1, FFI_S8 = 2, FFI_S16 = 3, FFI_S32 = 4, FFI_S64 = 5, FFI_U8 = 6, FFI_U16 = 7, FFI_U32 = 8, FFI_U64 = 9,
	FFI_F16 = 10, FFI_F32 = 11, FFI_F64 = 12, FFI_C64 = 15, FFI_BF16 = 16, FFI_TOKEN = 17, FFI_C128 = 18,
	FFI_F8E5M2 = 19, FFI_F8E4M3FN = 20, FFI_F8E4M3B11FNUZ = 23, FFI_F8E5M2FNUZ = 24, FFI_F8E4M3FNUZ = 25,
	FFI_F8E4M3 = 28, FFI_F8E3M4 = 29, FFI_F8E8M0FNU = 33,
};

typedef struct ffi_extension {
	size_t struct_size;
	int type;
	struct ffi_extension *next;
} ffi_extension;

typedef struct {
	size_t struct_size;
	ffi_extension *extension_start;
	int major, minor;
} ffi_version;

typedef struct {
	size_t struct_size;
	ffi_extension *extension_start;
	const char *message;
	int code;
} ffi_error_create;

// The functions behind error_create are not called.
typedef struct {
	size_t struct_size;
	ffi_extension *extension_start;
	ffi_version version;
	const void *internal;
	void *(*error_create)(ffi_error_create *args);
} ffi_api;

typedef struct {
	size_t struct_size;
	ffi_extension *extension_start;
	int dtype;
	void *data;
	int64_t rank;
	int64_t *dims;
} ffi_buffer;

typedef struct {
	const char *text;
	size_t size;
} ffi_span;

typedef struct {
	int dtype;
	void *value;
} ffi_scalar;

typedef struct {
	int dtype;
	size_t size;
	void *data;
} ffi_array;

// Arguments, and results in the same way.
typedef struct {
	size_t struct_size;
	ffi_extension *extension_start;
	int64_t size;
	int *types;
	void **values;
} ffi_values;

typedef struct {
	size_t struct_size;
	ffi_extension *extension_start;
	int64_t size;
	int *types;
	ffi_span **names;
	void **values;
} ffi_attributes;

typedef struct {
	size_t struct_size;
	ffi_extension *extension_start;
	const ffi_api *api;
	void *context;
	int stage;
	ffi_values args, results;
	ffi_attributes attributes;
	void *future;
} ffi_call;

// What XLA asks a handler for before it calls it: fields of version 0.3 behind these are XLA's to fill.
typedef struct {
	size_t struct_size;
	ffi_version version;
	uint32_t traits;
} ffi_metadata;

typedef struct {
	ffi_extension base;
	ffi_metadata *metadata;
} ffi_metadata_extension;

#endif
