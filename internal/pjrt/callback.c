#include "callback.h"

#include <stdlib.h>
#include "_cgo_export.h"

static void *get(lazo_KeyValueGetCallback_Args *args) { return lazoGet(args); }
static void *try_get(lazo_KeyValueTryGetCallback_Args *args) { return lazoTryGet(args); }
static void *put(lazo_KeyValuePutCallback_Args *args) { return lazoPut(args); }
static void ready(void *error, void *cell) { lazoReady(error, cell); }
static void delete_value(char *value) { lazoFree(value); }

void lazo_key_values(lazo_Client_Create_Args *args, uintptr_t *cell) {
	args->kv_get_callback = (void *)get;
	args->kv_try_get_callback = (void *)try_get;
	args->kv_put_callback = (void *)put;
	args->kv_get_user_arg = args->kv_try_get_user_arg = args->kv_put_user_arg = cell;
}

void *lazo_on_ready(const lazo_Api *api, void *event, uintptr_t *cell) {
	lazo_Event_OnReady_Args args = {.event = event, .callback = (void *)ready, .user_arg = cell};
	return LAZO_CALL(api->Event_OnReady, args);
}

void *lazo_make_error(void *callback_error, int code, const char *message, size_t size) {
	typedef void *(*make)(int code, const char *message, size_t size);
	return (*(make *)callback_error)(code, message, size);
}

void *lazo_deleter(void) { return (void *)delete_value; }
