// How a plugin calls Go. A cell of C memory holds the cgo.Handle of what is called.
#ifndef LAZO_PJRT_CALLBACK_H_
#define LAZO_PJRT_CALLBACK_H_

#include "api.h"

// lazo_key_values sets the callbacks of a client's store.
void lazo_key_values(lazo_Client_Create_Args *args, uintptr_t *cell);

// lazo_on_ready has the Go function of cell called when the event is ready.
void *lazo_on_ready(const lazo_Api *api, void *event, uintptr_t *cell);

// lazo_make_error makes an error by the function that a callback is given.
void *lazo_make_error(void *callback_error, int code, const char *message, size_t size);

// lazo_deleter is free as the deleter of a value.
void *lazo_deleter(void);

#endif
