#include "run.h"

#include <stdlib.h>
#include <string.h>

// PJRT's semantics of host memory: copied in the call; or used in place, until the buffer is freed.
enum { DURING_CALL = 0, ZERO_COPY = 2 };

// note keeps the first error of a run and drops the others.
static void note(const lazo_Api *api, void **kept, int *kept_failed, void *error, int failed) {
	if (!error) return;
	if (!*kept) {
		*kept = error;
		*kept_failed = failed;
		return;
	}
	lazo_Error_Destroy_Args args = {.error = error};
	LAZO_CALL(api->Error_Destroy, args);
}

void *lazo_destroy_buffer(const lazo_Api *api, void *buffer) {
	lazo_Buffer_Destroy_Args args = {.buffer = buffer};
	return LAZO_CALL(api->Buffer_Destroy, args);
}

void *lazo_destroy_event(const lazo_Api *api, void *event) {
	lazo_Event_Destroy_Args args = {.event = event};
	return LAZO_CALL(api->Event_Destroy, args);
}

void *lazo_await(const lazo_Api *api, void *event) {
	lazo_Event_Await_Args args = {.event = event};
	return LAZO_CALL(api->Event_Await, args);
}

// take empties a place and gives what was there.
static void *take(void **place) {
	void *taken = *place;
	*place = NULL;
	return taken;
}

// destroy_buffer destroys what is in a place, if anything is, and empties it.
static void *destroy_buffer(const lazo_Api *api, void **place) {
	void *buffer = take(place);
	return buffer ? lazo_destroy_buffer(api, buffer) : NULL;
}

lazo_run *lazo_new_run(const lazo_Api *api, void *executable, size_t devices, size_t args, size_t outs, size_t hosts) {
	size_t pointers = devices * (args + outs) + devices + devices * 2;
	size_t numbers = outs + hosts + args + hosts * LAZO_MAX_DIMS;
	lazo_run *run = calloc(1, sizeof *run + devices * hosts * (sizeof *run->host + sizeof *run->keeps) + devices * outs * sizeof *run->read + pointers * sizeof(void *) +
		numbers * sizeof(int64_t));
	if (!run) return NULL;
	run->api = api;
	run->devices = devices, run->args = args, run->outs = outs, run->hosts = hosts;
	run->host = (void *)(run + 1);
	run->keeps = (void *)(run->host + devices * hosts);
	run->read = (void *)(run->keeps + devices * hosts);
	run->in = (void *)(run->read + devices * outs);
	run->out = run->in + devices * args;
	run->events = run->out + devices * outs;
	void ***in_lists = (void *)(run->events + devices);
	void ***out_lists = in_lists + devices;
	run->replace = (void *)(out_lists + devices);
	run->host_arg = run->replace + outs;
	run->kept = run->host_arg + hosts;
	run->host_dims = run->kept + args;
	for (size_t d = 0; d < devices; d++) {
		in_lists[d] = run->in + d * args;
		out_lists[d] = run->out + d * outs;
	}
	for (size_t o = 0; o < outs; o++) run->replace[o] = -1;
	run->options = (lazo_ExecuteOptions){.struct_size = sizeof run->options, .non_donatable_input_indices = run->kept};
	run->execute = (lazo_LoadedExecutable_Execute_Args){
		.executable = executable, .options = &run->options, .argument_lists = in_lists, .num_devices = devices,
		.num_args = args, .output_lists = out_lists, .device_complete_events = run->events};
	return run;
}

// send makes the buffers of host inputs. Where their memory stays until the run has ended, a device that shares memory
// with the host needs no copy.
static void send(lazo_run *run, int mode) {
	const lazo_Api *api = run->api;
	for (size_t i = 0; i < run->devices * run->hosts && !run->error; i++) {
		lazo_Client_BufferFromHostBuffer_Args *host = &run->host[i];
		void **arg = &run->in[i / run->hosts * run->args + run->host_arg[i % run->hosts]];
		host->buffer = host->done_with_host_buffer = NULL;
		const lazo_kept *kept = &run->keeps[i];
		if (mode == LAZO_RUN && kept->buffer) { // no run of it goes on: each was waited for
			memcpy(kept->memory, host->data, kept->size);
			*arg = kept->buffer;
			continue;
		}
		host->host_buffer_semantics = mode == LAZO_START ? DURING_CALL : ZERO_COPY;
		note(api, &run->error, &run->failed, LAZO_CALL(api->Client_BufferFromHostBuffer, *host), LAZO_FROM_HOST);
		*arg = run->error ? NULL : host->buffer;
	}
}

// unsend destroys the buffers of host inputs, and waits until their memory is used no more, unless it is to stay.
static void unsend(lazo_run *run, int stay) {
	const lazo_Api *api = run->api;
	for (size_t i = 0; i < run->devices * run->hosts; i++) {
		lazo_Client_BufferFromHostBuffer_Args *host = &run->host[i];
		void **arg = &run->in[i / run->hosts * run->args + run->host_arg[i % run->hosts]];
		if (*arg && *arg == run->keeps[i].buffer) {
			*arg = NULL;
			continue;
		}
		note(api, &run->error, &run->failed, destroy_buffer(api, arg), LAZO_DESTROY_BUFFER);
		if (!host->done_with_host_buffer) continue; // it was not sent
		if (!stay) note(api, &run->error, &run->failed, lazo_await(api, host->done_with_host_buffer), LAZO_AWAIT);
		note(api, &run->error, &run->failed, lazo_destroy_event(api, take(&host->done_with_host_buffer)), LAZO_DESTROY_EVENT);
	}
}

lazo_made lazo_from_host(const lazo_Api *api, void *client, void *device, void *data, int type, int64_t *dims,
	size_t num_dims, int64_t *strides, int zero_copy) {
	lazo_made made = {0};
	lazo_Client_BufferFromHostBuffer_Args args = {
		.client = client, .data = data, .type = type, .dims = dims, .num_dims = num_dims, .byte_strides = strides,
		.num_byte_strides = strides ? num_dims : 0, .host_buffer_semantics = zero_copy ? ZERO_COPY : DURING_CALL,
		.device = device};
	note(api, &made.error, &made.failed, LAZO_CALL(api->Client_BufferFromHostBuffer, args), LAZO_FROM_HOST);
	if (made.error) return made;
	made.buffer = args.buffer;
	made.done = args.done_with_host_buffer;
	if (zero_copy) return made;
	note(api, &made.error, &made.failed, lazo_await(api, made.done), LAZO_AWAIT);
	note(api, &made.error, &made.failed, lazo_destroy_event(api, take(&made.done)), LAZO_DESTROY_EVENT);
	if (made.error) note(api, &made.error, &made.failed, destroy_buffer(api, &made.buffer), LAZO_DESTROY_BUFFER);
	return made;
}

// in_rows tells whether a buffer lies row after row, as the host has it. A plugin that does not say so says no.
static bool in_rows(const lazo_Api *api, void *buffer, size_t num_dims) {
	if (num_dims <= 1) return true;
	if (!api->Buffer_GetMemoryLayout) return false;
	lazo_Buffer_GetMemoryLayout_Args args = {.buffer = buffer};
	args.layout.struct_size = sizeof args.layout;
	void *error = LAZO_CALL(api->Buffer_GetMemoryLayout, args);
	if (error) {
		lazo_Error_Destroy_Args forget = {.error = error};
		LAZO_CALL(api->Error_Destroy, forget);
		return false;
	}
	const lazo_Buffer_MemoryLayout_Tiled *tiled = &args.layout.tiled;
	if (args.layout.type != 0 || tiled->num_tiles != 0 || tiled->minor_to_major_size != num_dims) return false;
	for (size_t i = 0; i < num_dims; i++)
		if (tiled->minor_to_major[i] != (int64_t)(num_dims - 1 - i)) return false;
	return true;
}

// is_on_host tells whether a buffer's memory is the host's and has the size. With an error, which is in copied, it is true.
static bool is_on_host(const lazo_Api *api, void *buffer, size_t size, lazo_copied *copied) {
	if (!api->Buffer_IsOnCpu || !api->Buffer_OnDeviceSizeInBytes) return false;
	lazo_Buffer_IsOnCpu_Args host = {.buffer = buffer};
	note(api, &copied->error, &copied->failed, LAZO_CALL(api->Buffer_IsOnCpu, host), LAZO_IS_ON_CPU);
	if (copied->error || !host.is_on_cpu) return copied->error != NULL;
	lazo_Buffer_OnDeviceSizeInBytes_Args held = {.buffer = buffer};
	note(api, &copied->error, &copied->failed, LAZO_CALL(api->Buffer_OnDeviceSizeInBytes, held), LAZO_SIZE);
	return copied->error || held.on_device_size_in_bytes == size;
}

// copy_memory copies a buffer's memory, which is the host's, and stays while it is copied.
static void copy_memory(const lazo_Api *api, void *buffer, void *dst, size_t size, lazo_copied *copied) {
	lazo_Buffer_OpaqueDeviceMemoryDataPointer_Args place = {.buffer = buffer};
	note(api, &copied->error, &copied->failed, LAZO_CALL(api->Buffer_OpaqueDeviceMemoryDataPointer, place), LAZO_PLACE);
	if (!copied->error) memcpy(dst, place.device_memory_ptr, size);
}

// read_in_place waits for a buffer and copies its memory, if that is the host's and has the size. It tells whether that
// is so; then an error is in copied.
static bool read_in_place(const lazo_Api *api, void *buffer, void *dst, size_t size, lazo_copied *copied) {
	if (!api->Buffer_ReadyEvent || !api->Buffer_OpaqueDeviceMemoryDataPointer || !api->Buffer_IncreaseExternalReferenceCount ||
		!api->Buffer_DecreaseExternalReferenceCount)
		return false;
	void **error = &copied->error;
	int *failed = &copied->failed;
	if (!is_on_host(api, buffer, size, copied)) return false;
	if (*error) return true;
	// With a reference the memory stays, whatever other threads do to the buffer.
	lazo_Buffer_IncreaseExternalReferenceCount_Args more = {.buffer = buffer};
	note(api, error, failed, LAZO_CALL(api->Buffer_IncreaseExternalReferenceCount, more), LAZO_REFER);
	if (*error) return true;
	lazo_Buffer_ReadyEvent_Args ready = {.buffer = buffer};
	note(api, error, failed, LAZO_CALL(api->Buffer_ReadyEvent, ready), LAZO_READY);
	if (!*error) note(api, error, failed, lazo_await(api, ready.event), LAZO_AWAIT);
	if (ready.event) note(api, error, failed, lazo_destroy_event(api, ready.event), LAZO_DESTROY_EVENT);
	if (!*error) copy_memory(api, buffer, dst, size, copied);
	lazo_Buffer_DecreaseExternalReferenceCount_Args less = {.buffer = buffer};
	note(api, error, failed, LAZO_CALL(api->Buffer_DecreaseExternalReferenceCount, less), LAZO_UNREFER);
	return true;
}

lazo_copied lazo_to_host(const lazo_Api *api, void *buffer, size_t num_dims, void *dst, size_t size, int how) {
	lazo_copied copied = {0};
	if (how == LAZO_COPY_READ && in_rows(api, buffer, num_dims) && read_in_place(api, buffer, dst, size, &copied)) return copied;
	int64_t order[LAZO_MAX_DIMS]; // from minor to major
	for (size_t i = 0; i < num_dims; i++) order[i] = (int64_t)(num_dims - 1 - i);
	lazo_Buffer_MemoryLayout rows = {.struct_size = sizeof rows,
		.tiled = {.struct_size = sizeof rows.tiled, .minor_to_major = order, .minor_to_major_size = num_dims}};
	lazo_Buffer_ToHostBuffer_Args args = {
		.src = buffer, .host_layout = num_dims > 1 ? &rows : NULL, .dst = dst, .dst_size = size};
	note(api, &copied.error, &copied.failed, LAZO_CALL(api->Buffer_ToHostBuffer, args), LAZO_TO_HOST);
	copied.event = copied.error ? NULL : args.event;
	if (how == LAZO_COPY_START || !copied.event) return copied;
	note(api, &copied.error, &copied.failed, lazo_await(api, copied.event), LAZO_AWAIT);
	note(api, &copied.error, &copied.failed, lazo_destroy_event(api, take(&copied.event)), LAZO_DESTROY_EVENT);
	return copied;
}

// read_outputs reads what is wanted on the host of a run that has ended, and destroys it. Nobody else has the outputs yet,
// so there is nothing to wait for and nothing to guard.
static void read_outputs(lazo_run *run) {
	const lazo_Api *api = run->api;
	for (size_t i = 0; i < run->devices * run->outs; i++) {
		const lazo_read *to = &run->read[i];
		void **out = &run->out[i];
		if (!to->dst || !*out) continue;
		lazo_copied copied = {0};
		if (!in_rows(api, *out, to->num_dims) || !api->Buffer_OpaqueDeviceMemoryDataPointer ||
			!is_on_host(api, *out, to->size, &copied))
			copied = lazo_to_host(api, *out, to->num_dims, to->dst, to->size, LAZO_COPY_WAIT);
		else if (!copied.error)
			copy_memory(api, *out, to->dst, to->size, &copied);
		note(api, &run->error, &run->failed, copied.error, copied.failed);
		note(api, &run->error, &run->failed, destroy_buffer(api, out), LAZO_DESTROY_BUFFER);
	}
}

void lazo_do(lazo_run *run, int mode) {
	const lazo_Api *api = run->api;
	run->error = NULL;
	run->failed = 0;
	for (size_t i = 0; i < run->devices * run->outs; i++) run->out[i] = NULL;
	for (size_t d = 0; d < run->devices; d++) run->events[d] = NULL;
	send(run, mode);
	if (!run->error) {
		bool on_caller = mode == LAZO_RUN && run->devices == 1;
		if (on_caller) lazo_change_mark(run->mark, 1);
		note(api, &run->error, &run->failed, LAZO_CALL(api->LoadedExecutable_Execute, run->execute), LAZO_EXECUTE);
		if (on_caller) lazo_change_mark(run->mark, -1);
	}
	run->ran = !run->error;
	if (mode == LAZO_RUN || !run->ran)
		for (size_t d = 0; d < run->devices; d++) {
			if (!run->events[d]) continue;
			void *error = lazo_await(api, run->events[d]);
			run->ran = run->ran && !error;
			note(api, &run->error, &run->failed, error, LAZO_AWAIT);
			note(api, &run->error, &run->failed, lazo_destroy_event(api, take(&run->events[d])), LAZO_DESTROY_EVENT);
		}
	if (run->ran)
		for (size_t d = 0; d < run->devices; d++)
			for (size_t o = 0; o < run->outs; o++) {
				if (run->replace[o] < 0) continue;
				void **arg = &run->in[d * run->args + run->replace[o]], **out = &run->out[d * run->outs + o];
				void *replaced = *arg;
				*arg = *out;
				*out = replaced; // to be destroyed when the program has ended: a destroy waits for that
				if (mode == LAZO_RUN) note(api, &run->error, &run->failed, destroy_buffer(api, out), LAZO_DESTROY_BUFFER);
			}
	else
		for (size_t i = 0; i < run->devices * run->outs; i++)
			note(api, &run->error, &run->failed, destroy_buffer(api, &run->out[i]), LAZO_DESTROY_BUFFER);
	if (run->ran && mode == LAZO_RUN) read_outputs(run);
	unsend(run, mode == LAZO_STAY && run->ran);
}

void *lazo_keep(lazo_run *run, size_t device, size_t host, size_t size, void *zeros, int *failed) {
	const lazo_Api *api = run->api;
	if (!api->Buffer_OpaqueDeviceMemoryDataPointer) return NULL;
	size_t i = device * run->hosts + host;
	const lazo_Client_BufferFromHostBuffer_Args *like = &run->host[i];
	lazo_made made = lazo_from_host(api, like->client, like->device, zeros, like->type, (int64_t *)like->dims, like->num_dims, NULL, 0);
	*failed = made.failed;
	if (made.error) return made.error;
	lazo_copied copied = {0};
	lazo_Buffer_OpaqueDeviceMemoryDataPointer_Args place = {.buffer = made.buffer};
	bool usable = in_rows(api, made.buffer, like->num_dims) && is_on_host(api, made.buffer, size, &copied) && !copied.error;
	if (usable)
		note(api, &copied.error, &copied.failed, LAZO_CALL(api->Buffer_OpaqueDeviceMemoryDataPointer, place), LAZO_PLACE);
	if (usable && !copied.error)
		run->keeps[i] = (lazo_kept){made.buffer, place.device_memory_ptr, size};
	else
		note(api, &copied.error, &copied.failed, destroy_buffer(api, &made.buffer), LAZO_DESTROY_BUFFER);
	*failed = copied.failed;
	return copied.error;
}

void *lazo_drop(lazo_run *run) {
	void *first = NULL;
	int failed = 0;
	for (size_t i = 0; i < run->devices * run->hosts; i++)
		note(run->api, &first, &failed, destroy_buffer(run->api, &run->keeps[i].buffer), LAZO_DESTROY_BUFFER);
	return first;
}
