// The C side of what must be fast: one call from Go does many of PJRT's.
#ifndef LAZO_PJRT_RUN_H_
#define LAZO_PJRT_RUN_H_

#include "api.h"
#include "inline.h"

// Which of PJRT's functions failed.
enum {
	LAZO_FROM_HOST = 1, LAZO_EXECUTE, LAZO_AWAIT, LAZO_DESTROY_BUFFER, LAZO_DESTROY_EVENT, LAZO_TO_HOST,
	LAZO_IS_ON_CPU, LAZO_SIZE, LAZO_REFER, LAZO_READY, LAZO_PLACE, LAZO_UNREFER
};

enum { LAZO_MAX_DIMS = 64 };

// Memory of the host that an output is read to, row after row; dst is null where it is not.
typedef struct {
	void *dst;
	size_t size, num_dims;
} lazo_read;

// A buffer on the device for a host input, in whose memory, which is the host's, each LAZO_RUN writes it. To make and destroy
// a buffer each time takes longer than to copy a small input. Null where there is none.
typedef struct {
	void *buffer, *memory;
	size_t size;
} lazo_kept;

// An execution of one program, prepared. Lists over devices and values lie flat, one device after the other.
typedef struct {
	const lazo_Api *api;
	lazo_LoadedExecutable_Execute_Args execute;
	lazo_ExecuteOptions options;
	lazo_mark mark;        // for LAZO_RUN on one device
	size_t devices, args, outs, hosts;
	void **in, **out;      // devices*args, devices*outs
	void **events;         // one a device
	int64_t *replace;      // for each output: the argument it takes the place of, or -1
	int64_t *host_arg;     // for each host input: the argument it is
	int64_t *kept;         // room for the arguments that are not donated
	int64_t *host_dims;    // LAZO_MAX_DIMS for each host input
	lazo_Client_BufferFromHostBuffer_Args *host; // devices*hosts
	lazo_kept *keeps;      // devices*hosts
	lazo_read *read;       // devices*outs; what LAZO_RUN has read is destroyed, and not in out
	// What the last run came to.
	void *error;
	int failed;       // the function that gave the error
	int ran;          // the outputs are good, those that replace arguments are in their places
} lazo_run;

// lazo_new_run gives a run whose memory is one block, all zero but for the lists; null if there is no memory.
lazo_run *lazo_new_run(const lazo_Api *api, void *executable, size_t devices, size_t args, size_t outs, size_t hosts);

// lazo_keep makes a buffer that is kept for a host input of such a size on a device, if its memory is the host's. It gives an
// error and which function failed. zeros is memory of that size.
void *lazo_keep(lazo_run *run, size_t device, size_t host, size_t size, void *zeros, int *failed);

// lazo_drop destroys the buffers that are kept, and gives the first error.
void *lazo_drop(lazo_run *run);

// How a program is run: LAZO_RUN waits until it has ended, and leaves no events to destroy. LAZO_START does not wait, so
// that the memory of host inputs is copied first; with LAZO_STAY it is not, and must stay until the program has ended. Both
// leave what was replaced in the place of the output that replaced it.
enum { LAZO_RUN, LAZO_START, LAZO_STAY };

// lazo_do runs the program, in one of these modes.
//
// After a failure nothing of the run is left: no output, no event, no buffer of a host input. The arguments are
// untouched, though PJRT may have deleted some. An error of a destroy after a good run has ran set: the arguments are
// the new ones, the other outputs are in out.
void lazo_do(lazo_run *run, int mode);

// A buffer made from host memory. done is the event after which the memory is free, null if it was waited for.
typedef struct {
	void *buffer, *done, *error;
	int failed;
} lazo_made;

void *lazo_destroy_buffer(const lazo_Api *api, void *buffer);
void *lazo_destroy_event(const lazo_Api *api, void *event);
void *lazo_await(const lazo_Api *api, void *event);

lazo_made lazo_from_host(const lazo_Api *api, void *client, void *device, void *data, int type, int64_t *dims,
	size_t num_dims, int64_t *strides, int zero_copy);

// A copy to host memory, row after row. event is null if it was waited for.
typedef struct {
	void *event, *error;
	int failed;
} lazo_copied;

// LAZO_COPY_READ reads the memory of a buffer that is the host's: a plugin's own copy runs in a thread of its own, whose
// start takes longer than a small copy. Where the memory is not row after row, or no memory of the host, it is LAZO_COPY_WAIT.
enum { LAZO_COPY_START, LAZO_COPY_WAIT, LAZO_COPY_READ };

lazo_copied lazo_to_host(const lazo_Api *api, void *buffer, size_t num_dims, void *dst, size_t size, int how);

// lazo_invoke calls any function of the table.
static inline void *lazo_invoke(lazo_function function, void *args) { return function(args); }

#endif
