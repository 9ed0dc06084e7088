// A plugin for tests. Its objects are blocks of malloc that it counts, and it fails one of its calls.
//
//   LAZO_FAKE_FAIL=k   the call number k (from 1) gives an error
//   LAZO_FAKE_REMOTE=1 buffers do not lie in the memory of the host
//   LAZO_FAKE_LATE=1   a program that fails has deleted its donated arguments before
//
// A program is the text "fake ARGS OUTS DONATED DEVICES": its values are all f32[4], output i is argument i plus 1, and
// the first DONATED outputs are written over their arguments. The plugin's attributes tell "live", the number of objects
// that exist, "calls", those made so far, and "failed", the function that was failed.
//
// StableHLO is read as far as its main function's types (all f32[4], or all f32) and its name: a module @sum gives for
// each argument its sum over all devices, one @step writes over one of two arguments the sum of it and of the other one on
// all devices, @place adds the place of the device among those of the program, and any other adds 1 as above. It runs on the devices whose numbers the compile options give.
//
// With the options node_id and num_nodes it is one of several processes, which find each other as XLA's for GPUs do, by
// the keys local_topology/fake/NODE and global_topology/fake, and exchange sums by further keys.
//
//   LAZO_FAKE_DEVICES=n  how many devices the process has, 2 without it
//   LAZO_FAKE_TILED=1    the devices of the processes are numbered in turns
//   LAZO_FAKE_REFUSE=i   the process with node_id i gives an error before its topology is known
//   LAZO_FAKE_DIE=i      it ends itself there
//   LAZO_FAKE_WAIT=ms    how long it waits for the others, 120000 without it
//   LAZO_FAKE_AGAIN=1    a process makes its client as if it had been started before
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../api.h"

enum { DEVICES = 2, VALUES = 4, MOST = 16 };
enum { ADD, SUM, STEP, PLACE };

typedef struct { int code; char message[128]; } Error;
typedef struct { int id, process; } Device;
typedef struct {
	Device device[MOST];
	void *devices[MOST], *own[MOST]; // of all processes, of this one
	int count, owned, node, nodes;
	lazo_Client_Create_Args store;
	int sums; // made so far
} Client;
typedef struct { float value[VALUES]; size_t size; void *data; int deleted; } Buffer;
typedef struct { int args, outs, donated, devices, op, rank, state, place[MOST]; void *on[MOST]; Client *client; } Program;
typedef struct { Error *error; } Event;

static int64_t live, calls;
static const char *failed = "";

static void *make(size_t size) {
	__atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
	return calloc(1, size);
}

static void unmake(void *object) {
	__atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
	free(object);
}

static void *error_of(int code, const char *message, size_t size) {
	Error *e = make(sizeof *e);
	e->code = code;
	snprintf(e->message, sizeof e->message, "%.*s", (int)size, message);
	return e;
}

// fail gives an error if this call is the one to fail.
static void *fail(const char *function) {
	const char *k = getenv("LAZO_FAKE_FAIL");
	if (++calls != (k ? atoll(k) : 0)) return NULL;
	failed = function;
	char text[100];
	int size = snprintf(text, sizeof text, "injected into %s", function);
	return error_of(8, text, (size_t)size);
}

#define CALL(name) static void *name(lazo_##name##_Args *a)
#define MAY_FAIL(name) do { void *e = fail(#name); if (e) return e; } while (0)

CALL(Error_Destroy) { return unmake(a->error), NULL; }
CALL(Error_Message) {
	a->message = ((Error *)a->error)->message;
	a->message_size = strlen(a->message);
	return NULL;
}
CALL(Error_GetCode) {
	MAY_FAIL(Error_GetCode);
	a->code = ((Error *)a->error)->code;
	return NULL;
}

CALL(Plugin_Initialize) { (void)a; MAY_FAIL(Plugin_Initialize); return NULL; }
CALL(Plugin_Attributes) {
	static lazo_NamedValue list[3];
	list[0] = (lazo_NamedValue){sizeof *list, 0, "live", 4, 1, live, 1};
	list[1] = (lazo_NamedValue){sizeof *list, 0, "calls", 5, 1, calls, 1};
	list[2] = (lazo_NamedValue){sizeof *list, 0, "failed", 6, 0, (int64_t)(intptr_t)failed, strlen(failed)};
	a->attributes = list;
	a->num_attributes = 3;
	return NULL;
}

// The callbacks of a store, as PJRT types them.
typedef void *(*Make)(int code, const char *message, size_t size);
static Make make_error = error_of;

static int number_of(const char *variable, int otherwise) {
	const char *text = getenv(variable);
	return text ? atoi(text) : otherwise;
}

static void *put(lazo_Client_Create_Args *a, const char *key, const void *value, size_t size) {
	lazo_KeyValuePutCallback_Args args = {sizeof args, 0, key, strlen(key), value, size, &make_error, a->kv_put_user_arg};
	return ((void *(*)(void *))a->kv_put_callback)(&args);
}

// get copies a value of a known length.
static void *get(lazo_Client_Create_Args *a, const char *key, int timeout, void *to, size_t size) {
	lazo_KeyValueGetCallback_Args args = {sizeof args, 0, key, strlen(key), timeout, &make_error, a->kv_get_user_arg, 0, 0, 0};
	void *error = ((void *(*)(void *))a->kv_get_callback)(&args);
	if (error) return error;
	int same = args.value_size == size;
	if (same) memcpy(to, args.value, size);
	((void (*)(char *))args.value_deleter_callback)(args.value);
	return same ? NULL : error_of(13, "a value of another length", 25);
}

static void *try_get(lazo_Client_Create_Args *a, const char *key, void *to, size_t size) {
	lazo_KeyValueTryGetCallback_Args args = {sizeof args, 0, key, strlen(key), &make_error, a->kv_try_get_user_arg, 0, 0, 0};
	void *error = ((void *(*)(void *))a->kv_try_get_callback)(&args);
	if (error) return error;
	int same = args.value_size == size;
	if (same) memcpy(to, args.value, size);
	((void (*)(char *))args.value_deleter_callback)(args.value);
	return same ? NULL : error_of(13, "a value of another length", 25);
}

// try_store looks what a store gives for a key that is there and for one that is not.
static void *try_store(lazo_Client_Create_Args *a) {
	char value[5];
	Error *error = put(a, "fake", "hello", 5);
	if (!error) error = get(a, "fake", 1500, value, sizeof value);
	if (error) return error;
	if (memcmp(value, "hello", 5)) return error_of(13, "another value", 13);
	error = try_get(a, "none", value, sizeof value);
	if (!error) return error_of(13, "a value for no key", 18);
	if (error->code != 5) return error;
	return unmake(error), NULL;
}

// A thread of the plugin's own asks for the topology of one process.
typedef struct { Client *client; int node, *to; Error *error; pthread_t thread; } Asked;
static void *ask(void *of) {
	Asked *a = of;
	char key[64];
	snprintf(key, sizeof key, "local_topology/fake/%d", a->node);
	a->error = get(&a->client->store, key, number_of("LAZO_FAKE_WAIT", 120000), a->to, sizeof *a->to);
	return NULL;
}

// join brings the processes together: each puts how many devices it has, the first gathers and puts it all.
static void *join(Client *c) {
	char key[64];
	int own = c->owned, all[MOST] = {0};
	snprintf(key, sizeof key, "local_topology/fake/%d", c->node);
	for (int again = number_of("LAZO_FAKE_AGAIN", 0); again >= 0; again--) {
		Error *error = put(&c->store, key, &own, sizeof own);
		if (!error) continue;
		if (error->code != 6) return error;
		unmake(error);
		int before;
		if ((error = try_get(&c->store, key, &before, sizeof before))) return error;
		if (before != own) return error_of(13, "another topology of this process is known", 40);
	}
	Asked asked[MOST];
	for (int i = 0; i < c->nodes && c->node == 0; i++) {
		asked[i] = (Asked){c, i, &all[i], NULL, 0};
		pthread_create(&asked[i].thread, NULL, ask, &asked[i]);
	}
	void *error = NULL;
	for (int i = 0; i < c->nodes && c->node == 0; i++) {
		pthread_join(asked[i].thread, NULL);
		if (asked[i].error && error) unmake(asked[i].error);
		else if (asked[i].error) error = asked[i].error;
	}
	if (error) return error;
	error = c->node == 0 ? put(&c->store, "global_topology/fake", all, sizeof all)
		: get(&c->store, "global_topology/fake", number_of("LAZO_FAKE_WAIT", 120000), all, sizeof all);
	if (error) return error;
	c->count = c->owned = 0;
	for (int i = 0; i < c->nodes; i++)
		for (int d = 0; d < all[i] && c->count < MOST; d++) {
			Device *device = &c->device[c->count];
			device->id = getenv("LAZO_FAKE_TILED") ? d * c->nodes + i : c->count;
			device->process = i;
			c->devices[c->count++] = device;
			if (i == c->node) c->own[c->owned++] = device;
		}
	return NULL;
}

static int64_t option(lazo_Client_Create_Args *a, const char *name, int64_t otherwise) {
	for (size_t i = 0; i < a->num_options; i++) {
		const lazo_NamedValue *v = &a->create_options[i];
		if (v->name_size == strlen(name) && !memcmp(v->name, name, v->name_size)) return v->int64_value;
	}
	return otherwise;
}

CALL(Client_Create) {
	MAY_FAIL(Client_Create);
	Client made = {.node = (int)option(a, "node_id", 0), .nodes = (int)option(a, "num_nodes", 1), .store = *a};
	made.count = made.owned = number_of("LAZO_FAKE_DEVICES", DEVICES);
	if (made.nodes == 1 && a->kv_get_callback) {
		void *error = try_store(a);
		if (error) return error;
	}
	if (made.nodes > 1) {
		if (number_of("LAZO_FAKE_DIE", -1) == made.node) _exit(9);
		if (number_of("LAZO_FAKE_REFUSE", -1) == made.node) return error_of(8, "no memory for a fake", 20);
		if (!a->kv_get_callback) return error_of(9, "no store", 8);
	}
	Client *c = make(sizeof *c);
	*c = made;
	for (int i = 0; i < c->count; i++) c->device[i].id = i, c->devices[i] = c->own[i] = &c->device[i];
	void *error = c->nodes > 1 ? join(c) : NULL;
	if (error) return unmake(c), error;
	a->client = c;
	return NULL;
}
CALL(Client_Destroy) { unmake(a->client); MAY_FAIL(Client_Destroy); return NULL; }
CALL(Client_PlatformName) {
	MAY_FAIL(Client_PlatformName);
	a->platform_name = "fake", a->platform_name_size = 4;
	return NULL;
}
CALL(Client_PlatformVersion) {
	MAY_FAIL(Client_PlatformVersion);
	a->platform_version = "1", a->platform_version_size = 1;
	return NULL;
}
CALL(Client_ProcessIndex) { MAY_FAIL(Client_ProcessIndex); a->process_index = ((Client *)a->client)->node; return NULL; }
CALL(Client_Devices) {
	MAY_FAIL(Client_Devices);
	Client *c = a->client;
	a->devices = c->devices, a->num_devices = (size_t)c->count;
	return NULL;
}
CALL(Client_AddressableDevices) {
	MAY_FAIL(Client_AddressableDevices);
	Client *c = a->client;
	a->addressable_devices = c->own, a->num_addressable_devices = (size_t)c->owned;
	return NULL;
}
CALL(Device_GetDescription) { MAY_FAIL(Device_GetDescription); a->device_description = a->device; return NULL; }
CALL(DeviceDescription_Id) {
	MAY_FAIL(DeviceDescription_Id);
	a->id = ((Device *)a->device_description)->id;
	return NULL;
}
CALL(DeviceDescription_ProcessIndex) {
	MAY_FAIL(DeviceDescription_ProcessIndex);
	a->process_index = ((Device *)a->device_description)->process;
	return NULL;
}
CALL(DeviceDescription_Kind) {
	MAY_FAIL(DeviceDescription_Kind);
	a->device_kind = "fake", a->device_kind_size = 4;
	return NULL;
}
CALL(DeviceDescription_DebugString) {
	MAY_FAIL(DeviceDescription_DebugString);
	a->debug_string = "FAKE", a->debug_string_size = 4;
	return NULL;
}

static void *new_event(void) { return make(sizeof(Event)); }
CALL(Event_Destroy) { unmake(a->event); MAY_FAIL(Event_Destroy); return NULL; }
CALL(Event_Await) { (void)a; MAY_FAIL(Event_Await); return NULL; }
CALL(Event_IsReady) { MAY_FAIL(Event_IsReady); a->is_ready = true; return NULL; }
CALL(Event_OnReady) {
	MAY_FAIL(Event_OnReady);
	((void (*)(void *, void *))a->callback)(NULL, a->user_arg);
	return NULL;
}

static void *new_buffer(const void *data, size_t size) {
	Buffer *b = make(sizeof *b);
	b->size = size;
	memcpy(b->value, data, size);
	return b;
}
CALL(Client_BufferFromHostBuffer) {
	MAY_FAIL(Client_BufferFromHostBuffer);
	size_t size = sizeof(float);
	for (size_t i = 0; i < a->num_dims; i++) size *= (size_t)a->dims[i];
	if (size > sizeof(float) * VALUES) return error_of(12, "an array of more than 16 bytes", 30);
	a->buffer = new_buffer(a->data, size);
	a->done_with_host_buffer = new_event();
	return NULL;
}
CALL(Buffer_Destroy) { unmake(a->buffer); MAY_FAIL(Buffer_Destroy); return NULL; }
CALL(Buffer_OnDeviceSizeInBytes) {
	MAY_FAIL(Buffer_OnDeviceSizeInBytes);
	a->on_device_size_in_bytes = ((Buffer *)a->buffer)->size;
	return NULL;
}
CALL(Buffer_Delete) { MAY_FAIL(Buffer_Delete); ((Buffer *)a->buffer)->deleted = 1; return NULL; }
CALL(Buffer_IsDeleted) { MAY_FAIL(Buffer_IsDeleted); a->is_deleted = ((Buffer *)a->buffer)->deleted; return NULL; }
CALL(Buffer_IsOnCpu) { MAY_FAIL(Buffer_IsOnCpu); a->is_on_cpu = !getenv("LAZO_FAKE_REMOTE"); return NULL; }
CALL(Buffer_ReadyEvent) { MAY_FAIL(Buffer_ReadyEvent); a->event = new_event(); return NULL; }
CALL(Buffer_CopyToDevice) {
	MAY_FAIL(Buffer_CopyToDevice);
	Buffer *b = a->buffer;
	a->dst_buffer = new_buffer(b->value, b->size);
	return NULL;
}
CALL(Buffer_ToHostBuffer) {
	MAY_FAIL(Buffer_ToHostBuffer);
	Buffer *b = a->src;
	if (b->deleted) return error_of(3, "deleted", 7);
	memcpy(a->dst, b->value, a->dst_size);
	a->event = new_event();
	return NULL;
}
CALL(Buffer_IncreaseExternalReferenceCount) { (void)a; MAY_FAIL(Buffer_IncreaseExternalReferenceCount); live++; return NULL; }
CALL(Buffer_DecreaseExternalReferenceCount) { (void)a; live--; MAY_FAIL(Buffer_DecreaseExternalReferenceCount); return NULL; }
CALL(Buffer_OpaqueDeviceMemoryDataPointer) {
	MAY_FAIL(Buffer_OpaqueDeviceMemoryDataPointer);
	a->device_memory_ptr = ((Buffer *)a->buffer)->value;
	return NULL;
}

static void *new_program(Client *client, const char *code, size_t size, void **to) {
	char text[64];
	snprintf(text, sizeof text, "%.*s", (int)size, code);
	Program p = {.rank = 1, .client = client};
	if (sscanf(text, "fake %d %d %d %d %d %d %d", &p.args, &p.outs, &p.donated, &p.devices, &p.op, &p.rank, &p.state) < 4)
		return error_of(3, "not a program of the fake", 25);
	memcpy(p.on, client->own, sizeof p.on);
	*to = make(sizeof p);
	memcpy(*to, &p, sizeof p);
	return NULL;
}

static uint64_t varint(const unsigned char **at, const unsigned char *end) {
	uint64_t v = 0;
	for (int shift = 0; *at < end; shift += 7) {
		unsigned char byte = *(*at)++;
		v |= (uint64_t)(byte & 127) << shift;
		if (byte < 128) break;
	}
	return v;
}

// field finds the message number n of a protocol buffer, the one with so many before it.
static const unsigned char *field(const unsigned char *at, const unsigned char *end, uint64_t n, int before, const unsigned char **until) {
	while (at < end) {
		uint64_t tag = varint(&at, end), v = varint(&at, end);
		if ((tag & 7) != 2) continue; // a number
		if (tag >> 3 == n && before-- == 0) return *until = at + v, at;
		at += v;
	}
	return NULL;
}

static int count(const char *text, const char *end, const char *word) {
	int n = 0;
	for (const char *at = text; (at = memmem(at, (size_t)(end - at), word, strlen(word))); at++) n++;
	return n;
}

// read_module makes a program of StableHLO.
static void *read_module(Client *client, lazo_Client_Compile_Args *a) {
	const char *code = a->program->code, *end = code + a->program->code_size;
	const char *main = memmem(code, a->program->code_size, "@main(", 6);
	const char *line = main ? memchr(main, '\n', (size_t)(end - main)) : NULL;
	const char *arrow = line ? memmem(main, (size_t)(line - main), "->", 2) : NULL;
	if (!arrow) return error_of(3, "no main function on one line", 28);
	Program p = {
		.args = count(main, arrow, "tensor<"), .outs = count(arrow, line, "tensor<"), .donated = count(main, arrow, "tf.aliasing_output"),
		.op = !memcmp(code, "module @sum", 11) ? SUM : !memcmp(code, "module @step", 12) ? STEP : !memcmp(code, "module @place", 13) ? PLACE : ADD,
		.rank = count(main, line, "tensor<f32>") ? 0 : 1, .client = client,
	};
	const char *aliased = memmem(main, (size_t)(arrow - main), "tf.aliasing_output", 18);
	if (p.op == STEP && (!aliased || p.args != 2 || p.outs != 1)) return error_of(3, "a step of other arguments", 25);
	if (p.op == STEP) p.state = count(main, aliased, "tensor<") - 1;
	const unsigned char *at = (const unsigned char *)a->compile_options, *build = field(at, at + a->compile_options_size, 3, 0, &at), *assigned = NULL;
	if (build) assigned = field(build, at, 9, 0, &at);
	const unsigned char *last = at, *partition, *ids;
	for (int i = 0; assigned && (partition = field(assigned, last, 3, i, &at)); i++)
		if ((ids = field(partition, at, 1, 0, &at))) {
			int id = (int)varint(&ids, at), known = 0;
			for (int d = 0; d < client->count; d++) known |= ((Device *)client->devices[d])->id == id;
			if (!known) return error_of(3, "a device that is not there", 26);
			for (int d = 0; d < client->owned; d++)
				if (((Device *)client->own[d])->id == id) p.place[p.devices] = i, p.on[p.devices++] = client->own[d];
		}
	if (!assigned) p.on[p.devices++] = client->own[0];
	if (!p.devices) return error_of(3, "none of this process's devices", 30);
	a->executable = make(sizeof p);
	memcpy(a->executable, &p, sizeof p);
	return NULL;
}

// sum adds what all devices of all processes have as an argument.
static void *sum(Client *c, void *const *const *arguments, size_t devices, int argument, float *total) {
	char key[64];
	memset(total, 0, sizeof(float) * VALUES);
	for (size_t d = 0; d < devices; d++)
		for (int i = 0; i < VALUES; i++) total[i] += ((Buffer *)arguments[d][argument])->value[i];
	if (c->nodes < 2) return NULL;
	snprintf(key, sizeof key, "sum/%d/%d", c->sums, c->node);
	void *error = put(&c->store, key, total, sizeof(float) * VALUES);
	for (int i = 0; i < c->nodes && !error; i++) {
		float part[VALUES];
		if (i == c->node) continue;
		snprintf(key, sizeof key, "sum/%d/%d", c->sums, i);
		if ((error = get(&c->store, key, 60000, part, sizeof part))) break;
		for (int v = 0; v < VALUES; v++) total[v] += part[v];
	}
	c->sums++;
	return error;
}
// dump writes what XLA writes of a program, into the folder that the options name by xla_dump_to.
static void dump(const char *options, size_t size, size_t length) {
	static const char key[] = "xla_dump_to";
	const char *at = memmem(options, size, key, sizeof key - 1);
	if (!at) return;
	const unsigned char *value = (const unsigned char *)at + sizeof key - 1; // a field of its size, with a text of its size
	char name[256];
	snprintf(name, sizeof name, "%.*s/module_0000.fake.after_optimizations.txt", (int)value[3], (const char *)value + 4);
	FILE *file = fopen(name, "w");
	if (!file) return;
	fprintf(file, "HloModule fake, is_scheduled=true\n\nENTRY %%main (x: u8[%zu]) -> u8[%zu] {\n  %%x = u8[%zu]{0} parameter(0)\n  ROOT %%y = u8[%zu]{0} negate(%%x)\n}\n", length, length, length, length);
	fclose(file);
}
// A program for a topology may be StableHLO too, which is not looked at; "crash" and "hang" do that, and one
// with an array of 2^40 elements does not fit.
CALL(Compile) {
	MAY_FAIL(Compile);
	if (a->program->code_size >= 5 && !memcmp(a->program->code, "crash", 5)) {
		fprintf(stderr, "F0101 00:00:00.0 1 fake.cc:1] the fake ends here\n");
		abort();
	}
	if (a->program->code_size >= 4 && !memcmp(a->program->code, "hang", 4)) for (;;) sleep(1);
	static Client none;
	if (memmem(a->program->code, a->program->code_size, "tensor<1099511627776x", 21))
		return error_of(8, "Ran out of memory: required (1024.00G) exceeds available HBM (15.75G).", 70);
	if (a->program->code_size < 6 || memcmp(a->program->code, "module", 6))
		return new_program(&none, a->program->code, a->program->code_size, &a->executable);
	dump(a->compile_options, a->compile_options_size, a->program->code_size);
	a->executable = make(sizeof(Program));
	((Program *)a->executable)->devices = (int)a->program->code_size;
	return NULL;
}
// The code of a program for a topology is its size, in bytes of memory.
CALL(Executable_GetCompiledMemoryStats) {
	MAY_FAIL(Executable_GetCompiledMemoryStats);
	a->generated_code_size_in_bytes = ((Program *)a->executable)->devices;
	return NULL;
}
CALL(Client_Compile) {
	MAY_FAIL(Client_Compile);
	if (a->program->code_size > 6 && !memcmp(a->program->code, "module", 6)) return read_module(a->client, a);
	return new_program(a->client, a->program->code, a->program->code_size, &a->executable);
}
CALL(Executable_DeserializeAndLoad) {
	MAY_FAIL(Executable_DeserializeAndLoad);
	return new_program(a->client, a->serialized_executable, a->serialized_executable_size, &a->loaded_executable);
}
// A topology is "fake", "fake:N", of N devices, or "v5e:AxB"; any other name is an error.
typedef struct { int devices; Device device[8]; void *descriptions[8]; } Topology;
CALL(TopologyDescription_Create) {
	MAY_FAIL(TopologyDescription_Create);
	Topology t = {DEVICES};
	char name[32];
	snprintf(name, sizeof name, "%.*s", (int)a->topology_name_size, a->topology_name ? a->topology_name : "");
	if (!strcmp(name, "crash")) abort();
	if (!strcmp(name, "hang")) for (;;) sleep(1);
	int columns;
	if (sscanf(name, "v5e:%dx%d", &t.devices, &columns) == 2) t.devices *= columns; // as libtpu names grids
	else if (strcmp(name, "fake") && (sscanf(name, "fake:%d", &t.devices) != 1))
		t.devices = 0;
	if (t.devices < 1 || t.devices > 8)
		return error_of(3, "not a topology of the fake", 26);
	Topology *made = a->topology = make(sizeof t);
	*made = t;
	for (int i = 0; i < t.devices; i++) made->device[i].id = i, made->descriptions[i] = &made->device[i];
	return NULL;
}
CALL(TopologyDescription_Destroy) { unmake(a->topology); MAY_FAIL(TopologyDescription_Destroy); return NULL; }
CALL(TopologyDescription_PlatformName) {
	MAY_FAIL(TopologyDescription_PlatformName);
	a->platform_name = "fake", a->platform_name_size = 4;
	return NULL;
}
CALL(TopologyDescription_PlatformVersion) {
	MAY_FAIL(TopologyDescription_PlatformVersion);
	a->platform_version = "1", a->platform_version_size = 1;
	return NULL;
}
CALL(TopologyDescription_GetDeviceDescriptions) {
	MAY_FAIL(TopologyDescription_GetDeviceDescriptions);
	Topology *t = a->topology;
	a->descriptions = t->descriptions, a->num_descriptions = (size_t)t->devices;
	return NULL;
}
CALL(TopologyDescription_Attributes) { MAY_FAIL(TopologyDescription_Attributes); a->num_attributes = 0; return NULL; }
CALL(DeviceDescription_Attributes) {
	MAY_FAIL(DeviceDescription_Attributes);
	static lazo_NamedValue cores = {sizeof cores, 0, "cores", 5, 1, 7, 1};
	a->attributes = &cores, a->num_attributes = 1;
	return NULL;
}
CALL(LoadedExecutable_Destroy) { unmake(a->executable); MAY_FAIL(LoadedExecutable_Destroy); return NULL; }
CALL(Executable_Destroy) { unmake(a->executable); MAY_FAIL(Executable_Destroy); return NULL; }
CALL(LoadedExecutable_GetExecutable) {
	MAY_FAIL(LoadedExecutable_GetExecutable);
	a->executable = make(sizeof(Program));
	memcpy(a->executable, a->loaded_executable, sizeof(Program));
	return NULL;
}
CALL(Executable_Name) { MAY_FAIL(Executable_Name); a->executable_name = "fake", a->executable_name_size = 4; return NULL; }
CALL(LoadedExecutable_AddressableDevices) {
	MAY_FAIL(LoadedExecutable_AddressableDevices);
	Program *p = a->executable;
	a->addressable_devices = p->on, a->num_addressable_devices = (size_t)p->devices;
	return NULL;
}
CALL(Executable_OutputElementTypes) {
	MAY_FAIL(Executable_OutputElementTypes);
	static int types[] = {11, 11, 11, 11};
	a->output_types = types, a->num_output_types = (size_t)((Program *)a->executable)->outs;
	return NULL;
}
CALL(Executable_OutputDimensions) {
	MAY_FAIL(Executable_OutputDimensions);
	static const int64_t dims[] = {VALUES, VALUES, VALUES, VALUES};
	static const size_t sizes[][4] = {{0, 0, 0, 0}, {1, 1, 1, 1}};
	a->num_outputs = (size_t)((Program *)a->executable)->outs, a->dims = dims, a->dim_sizes = sizes[((Program *)a->executable)->rank];
	return NULL;
}
// The optimized program is an HloModuleProto with parameters and aliases.
CALL(Executable_OptimizedProgram) {
	MAY_FAIL(Executable_OptimizedProgram);
	Program *p = a->executable;
	char module[128];
	size_t n = 0;
	size_t shape = p->rank ? 7 : 4;
	module[n++] = 4 << 3 | 2, module[n++] = (char)((size_t)p->args * shape); // program shape
	for (int i = 0; i < p->args; i++) memcpy(module + n, p->rank ? "\x0a\x05\x10\x0b\x1a\x01\x04" : "\x0a\x02\x10\x0b", shape), n += shape;
	module[n++] = 8 << 3 | 2, module[n++] = (char)(p->donated * 7); // aliases
	for (int i = 0; i < p->donated; i++) {
		char entry[] = {1 << 3 | 2, 5, 1 << 3 | 2, 1, (char)i, 2 << 3, (char)(p->state + i)};
		memcpy(module + n, entry, 7), n += 7;
	}
	if (a->program->code) memcpy(a->program->code, module, n);
	a->program->code_size = n, a->program->format = "hlo", a->program->format_size = 3;
	return NULL;
}
static void delete_serialized(void *serialized) { unmake(serialized); }
CALL(Executable_Serialize) {
	MAY_FAIL(Executable_Serialize);
	const Program *p = a->executable;
	char *text = a->serialized_executable = make(64);
	a->serialized_bytes = text;
	a->serialized_bytes_size = (size_t)snprintf(text, 64, "fake %d %d %d %d %d %d %d", p->args, p->outs, p->donated, p->devices, p->op, p->rank, p->state);
	a->serialized_executable_deleter = (void *)delete_serialized;
	return NULL;
}
CALL(LoadedExecutable_Execute) {
	Program *p = a->executable;
	for (size_t d = 0; d < a->num_devices; d++)
		for (int i = 0; i < p->args; i++)
			if (((Buffer *)a->argument_lists[d][i])->deleted) return error_of(3, "an argument is deleted", 22);
	void *error = fail("LoadedExecutable_Execute");
	if (error && !getenv("LAZO_FAKE_LATE")) return error;
	size_t kept = a->options->num_non_donatable_input_indices;
	for (size_t d = 0; d < a->num_devices; d++)
		for (int i = 0; i < p->donated && !kept; i++) ((Buffer *)a->argument_lists[d][p->state + i])->deleted = 1;
	if (error) return error;
	float sums[VALUES][VALUES];
	for (int o = 0; o < p->outs && (p->op == SUM || p->op == STEP); o++)
		if ((error = sum(p->client, (void *)a->argument_lists, a->num_devices, p->op == STEP ? !p->state : o, sums[o]))) return error;
	for (size_t d = 0; d < a->num_devices; d++) {
		for (int o = 0; o < p->outs; o++) {
			Buffer *in = a->argument_lists[d][p->state + o];
			float value[VALUES];
			for (int i = 0; i < VALUES; i++) value[i] = p->op == SUM ? sums[o][i] : in->value[i] + (p->op == STEP ? sums[o][i] : p->op == PLACE ? p->place[d] : 1);
			a->output_lists[d][o] = new_buffer(value, in->size);
		}
		if (a->device_complete_events) a->device_complete_events[d] = new_event();
	}
	return NULL;
}

// The table is longer than any that is known, and of a minor version to come.
static struct { lazo_Api api; void *more[64]; } table;

lazo_Api *GetPjrtApi(void) {
	table.api.head = (lazo_pjrt_table){sizeof table, 0, {sizeof(lazo_pjrt_version), 0, 0, 200}};
#define SET(name) table.api.name = (lazo_function)name;
	SET(Error_Destroy) SET(Error_Message) SET(Error_GetCode) SET(Plugin_Initialize) SET(Plugin_Attributes)
	SET(Client_Create) SET(Client_Destroy) SET(Client_PlatformName) SET(Client_PlatformVersion) SET(Client_ProcessIndex)
	SET(Client_Devices) SET(Client_AddressableDevices) SET(Device_GetDescription) SET(DeviceDescription_Id)
	SET(DeviceDescription_ProcessIndex) SET(DeviceDescription_Kind) SET(DeviceDescription_DebugString)
	SET(Event_Destroy) SET(Event_Await) SET(Event_IsReady) SET(Event_OnReady)
	SET(Client_BufferFromHostBuffer) SET(Buffer_Destroy) SET(Buffer_OnDeviceSizeInBytes) SET(Buffer_Delete)
	SET(Buffer_IsDeleted) SET(Buffer_IsOnCpu) SET(Buffer_ReadyEvent) SET(Buffer_CopyToDevice) SET(Buffer_ToHostBuffer)
	SET(Buffer_IncreaseExternalReferenceCount) SET(Buffer_DecreaseExternalReferenceCount)
	SET(Buffer_OpaqueDeviceMemoryDataPointer)
	SET(Client_Compile) SET(Executable_DeserializeAndLoad) SET(LoadedExecutable_Destroy) SET(Executable_Destroy)
	SET(LoadedExecutable_GetExecutable) SET(Executable_Name) SET(LoadedExecutable_AddressableDevices)
	SET(Executable_OutputElementTypes) SET(Executable_OutputDimensions) SET(Executable_OptimizedProgram)
	SET(Executable_Serialize) SET(LoadedExecutable_Execute)
	SET(TopologyDescription_Create) SET(TopologyDescription_Destroy) SET(TopologyDescription_PlatformName)
	SET(TopologyDescription_PlatformVersion) SET(TopologyDescription_GetDeviceDescriptions)
	SET(TopologyDescription_Attributes) SET(DeviceDescription_Attributes) SET(Compile)
	SET(Executable_GetCompiledMemoryStats)
	return &table.api;
}
