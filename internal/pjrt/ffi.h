// What lazo uses of PJRT's FFI extension, declared by hand as in api.h. No plugin brings this extension's header; what
// stands here is that of plugins with PJRT 0.81 to 0.106, whose registration checks struct_size against its own.
#ifndef LAZO_PJRT_FFI_H_
#define LAZO_PJRT_FFI_H_

#include "api.h"

enum { LAZO_EXTENSION_FFI = 5 };

typedef struct {
	lazo_Extension_Base base;
	lazo_function TypeID_Register;
	lazo_function UserData_Add;
	lazo_function Register_Handler;
} lazo_FFI_Extension;

// There is no extension_start in this one.
typedef struct {
	size_t struct_size;
	const char *target_name;
	size_t target_name_size;
	void *handler;
	const char *platform_name;
	size_t platform_name_size;
	int traits;
} lazo_FFI_Register_Handler_Args;

// The size that plugins know ends with the last field, without what the compiler adds behind it.
enum { LAZO_FFI_REGISTER_SIZE = offsetof(lazo_FFI_Register_Handler_Args, traits) + sizeof(int) };

#endif
