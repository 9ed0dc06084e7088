#include "exchange.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "ffi.h"
#include "operations.h"

enum { DTYPES = 64 };

// Ranks that exchange with each other, as one list of groups divides them.
typedef struct group {
	struct group *next;
	int64_t *members; // of all groups, one behind the other
	size_t count;
	int64_t size; // of each group
	lazo_handle comm;
} group;

static struct {
	lazo_mpi mpi;
	lazo_place place;
	lazo_handle host, program; // communicators
	lazo_handle own[DTYPES][LAZO_OPS]; // operations, 0 for none
	lazo_handle u128; // a type of 16 bytes
	group *groups;
	char *block; // room to pack arrays
	size_t block_size;
	int64_t limit; // of elements in one call of MPI, whose counts are int
	int64_t packed; // bytes up to which an array is packed
	bool ready;
} world = {.limit = 1 << 30, .packed = 64 << 10};

static struct {
	atomic_uint_fast64_t begun, ended;
	atomic_int_fast64_t site, bytes, since;
	atomic_int kind;
	atomic_flag busy;
} record = {.busy = ATOMIC_FLAG_INIT};

static const char *const kinds[LAZO_KINDS] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute"};

const char *lazo_kind(int kind) { return kinds[kind]; }

#define TRY(name, ...) \
	do { \
		int code_ = world.mpi.name(__VA_ARGS__); \
		if (code_) return (lazo_result){"MPI_" #name, code_}; \
	} while (0)

static const lazo_result good = {NULL, 0};

int64_t lazo_clock(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

lazo_record lazo_now(void) {
	lazo_record now;
	do { // until nothing began between
		now.begun = atomic_load(&record.begun);
		now.ended = atomic_load(&record.ended);
		now.site = atomic_load(&record.site);
		now.bytes = atomic_load(&record.bytes);
		now.since = atomic_load(&record.since);
		now.kind = atomic_load(&record.kind);
	} while (now.begun != atomic_load(&record.begun));
	return now;
}

lazo_result lazo_initialized(const lazo_mpi *mpi, int *flag) {
	int code = mpi->Initialized(flag);
	return code ? (lazo_result){"MPI_Initialized", code} : good;
}

static lazo_result own_comm(lazo_handle *made) {
	TRY(Comm_dup, world.mpi.world, made);
	TRY(Comm_set_errhandler, *made, world.mpi.errors_return);
	return good;
}

lazo_result lazo_init(const lazo_mpi *mpi, lazo_place *place) {
	world.mpi = *mpi;
	int provided = 0;
	TRY(Init_thread, NULL, NULL, mpi->thread_multiple, &provided);
	TRY(Comm_set_errhandler, mpi->world, mpi->errors_return);
	if (provided < mpi->thread_multiple) { // the levels are in order in each implementation
		TRY(Finalize);
		return good;
	}
	place->threads = 1;
	TRY(Comm_rank, mpi->world, &place->rank);
	TRY(Comm_size, mpi->world, &place->size);
	lazo_handle local = 0;
	TRY(Comm_split_type, mpi->world, mpi->type_shared, 0, mpi->no_info, &local);
	TRY(Comm_rank, local, &place->local_rank);
	TRY(Comm_size, local, &place->local_size);
	TRY(Comm_free, &local);
	lazo_result result = own_comm(&world.host);
	if (!result.name) result = own_comm(&world.program);
	if (result.name) return result;
	for (int dtype = 0; dtype < DTYPES; dtype++)
		for (int op = 0; op < LAZO_OPS; op++) {
			lazo_operation *own = lazo_own(dtype, op);
			if (own) TRY(Op_create, own, 1, &world.own[dtype][op]);
		}
	TRY(Type_contiguous, 2, mpi->u64, &world.u128);
	TRY(Type_commit, &world.u128);
	world.place = *place;
	world.ready = true;
	return good;
}

lazo_result lazo_finalize(void) {
	world.ready = false;
	TRY(Finalize);
	if (world.mpi.flavour != LAZO_OPEN_MPI) lazo_run_exit(&world.mpi);
	return good;
}

void lazo_abort(int code) {
	world.mpi.Abort(world.mpi.world, code);
	_exit(code);
}

void lazo_error_text(const lazo_mpi *mpi, int code, char *text, size_t size) {
	char said[8192] = ""; // more than any implementation writes
	int length = 0;
	if (mpi->Error_string(code, said, &length) || !said[0]) snprintf(text, size, "error %d", code);
	else snprintf(text, size, "%s (error %d)", said, code);
}

void lazo_set_limits(int64_t elements, int64_t packed) {
	if (elements) world.limit = elements;
	if (packed) world.packed = packed;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// What an element is for MPI.
typedef struct {
	lazo_handle type, op;
	int64_t units; // of type in an element
	int64_t size; // of a unit in bytes
} element;

// element_size is 0 for what is no number type.
static int64_t element_size(int dtype) {
	switch (dtype) {
	case FFI_PRED: case FFI_S8: case FFI_U8: case FFI_F8E5M2: case FFI_F8E4M3FN: case FFI_F8E4M3B11FNUZ: case FFI_F8E5M2FNUZ:
	case FFI_F8E4M3FNUZ: case FFI_F8E4M3: case FFI_F8E3M4: case FFI_F8E8M0FNU: return 1;
	case FFI_S16: case FFI_U16: case FFI_F16: case FFI_BF16: return 2;
	case FFI_S32: case FFI_U32: case FFI_F32: return 4;
	case FFI_S64: case FFI_U64: case FFI_F64: case FFI_C64: return 8;
	case FFI_C128: return 16;
	}
	return 0;
}

static const char *type_name(int dtype) {
	static const char *const names[] = {[FFI_PRED] = "pred", [FFI_S8] = "s8", [FFI_S16] = "s16", [FFI_S32] = "s32", [FFI_S64] = "s64",
		[FFI_U8] = "u8", [FFI_U16] = "u16", [FFI_U32] = "u32", [FFI_U64] = "u64", [FFI_F16] = "f16", [FFI_F32] = "f32",
		[FFI_F64] = "f64", [FFI_C64] = "c64", [FFI_BF16] = "bf16", [FFI_TOKEN] = "token", [FFI_C128] = "c128",
		[FFI_F8E5M2] = "f8e5m2", [FFI_F8E4M3FN] = "f8e4m3fn", [FFI_F8E4M3B11FNUZ] = "f8e4m3b11fnuz", [FFI_F8E5M2FNUZ] = "f8e5m2fnuz",
		[FFI_F8E4M3FNUZ] = "f8e4m3fnuz", [FFI_F8E4M3] = "f8e4m3", [FFI_F8E3M4] = "f8e3m4", [FFI_F8E8M0FNU] = "f8e8m0fnu"};
	const char *name = dtype >= 0 && dtype < (int)(sizeof names / sizeof names[0]) ? names[dtype] : NULL;
	return name ? name : "a type that MPI does not know";
}

// reduced finds how MPI reduces a type, and tells whether it can.
static bool reduced(int dtype, int64_t op, element *e) {
	const lazo_mpi *mpi = &world.mpi;
	lazo_handle type = 0;
	e->units = 1;
	e->size = element_size(dtype);
	bool bits = op == LAZO_AND || op == LAZO_OR, adds = op == LAZO_SUM || op == LAZO_PRODUCT;
	switch (dtype) {
	case FFI_PRED: type = adds ? 0 : mpi->u8; break;
	case FFI_S8: type = mpi->i8; break;
	case FFI_S16: type = mpi->i16; break;
	case FFI_S32: type = mpi->i32; break;
	case FFI_S64: type = mpi->i64; break;
	case FFI_U8: type = mpi->u8; break;
	case FFI_U16: type = mpi->u16; break;
	case FFI_U32: type = mpi->u32; break;
	case FFI_U64: type = mpi->u64; break;
	case FFI_F16: case FFI_BF16: type = bits ? 0 : mpi->u16; break;
	case FFI_F32: type = bits ? 0 : mpi->f32; break;
	case FFI_F64: type = bits ? 0 : mpi->f64; break;
	case FFI_C64: case FFI_C128:
		if (op == LAZO_PRODUCT) {
			type = dtype == FFI_C64 ? mpi->u64 : world.u128;
		} else if (op == LAZO_SUM) { // of the parts
			type = dtype == FFI_C64 ? mpi->f32 : mpi->f64;
			e->units = 2;
			e->size /= 2;
		}
		break;
	}
	e->type = type;
	e->op = world.own[dtype][op] ? world.own[dtype][op] : mpi->op[op];
	return type != 0;
}

static lazo_result all_reduce(const void *from, void *to, int64_t units, element e, lazo_handle comm) {
	for (int64_t at = 0; at < units; at += world.limit) {
		char *part = (char *)to + at * e.size;
		const void *source = from == to ? world.mpi.in_place : (const char *)from + at * e.size;
		TRY(Allreduce, source, part, (int)least(world.limit, units - at), e.type, e.op, comm);
	}
	return good;
}

// reduce_scatter reduces size parts of so many units each, and gives each rank its own.
static lazo_result reduce_scatter(const void *from, void *to, int64_t units, element e, lazo_handle comm, int64_t size) {
	if (units <= world.limit / size) {
		TRY(Reduce_scatter_block, from, to, (int)units, e.type, e.op, comm);
		return good;
	}
	for (int64_t rank = 0; rank < size; rank++) // the implementations count the whole in an int
		for (int64_t at = 0; at < units; at += world.limit)
			TRY(Reduce, (const char *)from + (rank * units + at) * e.size, (char *)to + at * e.size,
				(int)least(world.limit, units - at), e.type, e.op, (int)rank, comm);
	return good;
}

// spread_type makes the type of a piece of bytes whose next one lies stride bytes further.
static lazo_result spread_type(int64_t bytes, int64_t stride, lazo_handle *made) {
	lazo_handle piece = 0;
	TRY(Type_contiguous, (int)bytes, world.mpi.byte, &piece);
	TRY(Type_create_resized, piece, 0, (intptr_t)stride, made);
	TRY(Type_commit, made);
	TRY(Type_free, &piece);
	return good;
}

typedef lazo_result move(const char *from, char *to, int64_t bytes, int64_t offset, lazo_handle spread, lazo_handle comm);

static lazo_result gather_piece(const char *from, char *to, int64_t bytes, int64_t offset, lazo_handle spread, lazo_handle comm) {
	if (spread) TRY(Allgather, from + offset, (int)bytes, world.mpi.byte, to + offset, 1, spread, comm);
	else TRY(Allgather, from, (int)bytes, world.mpi.byte, to, (int)bytes, world.mpi.byte, comm);
	return good;
}

static lazo_result all_to_all_piece(const char *from, char *to, int64_t bytes, int64_t offset, lazo_handle spread, lazo_handle comm) {
	const void *source = from == to ? world.mpi.in_place : from + offset;
	if (spread) TRY(Alltoall, source, 1, spread, to + offset, 1, spread, comm);
	else TRY(Alltoall, source, (int)bytes, world.mpi.byte, to, (int)bytes, world.mpi.byte, comm);
	return good;
}

// moved is a gather or an all-to-all of parts of so many bytes, in pieces where they are too large together.
static lazo_result moved(move *piece, const void *from, void *to, int64_t bytes, lazo_handle comm, int64_t size) {
	int64_t most = world.limit / size;
	if (bytes <= most) return piece(from, to, bytes, 0, 0, comm);
	for (int64_t at = 0; at < bytes; at += most) {
		int64_t n = least(most, bytes - at);
		lazo_handle spread = 0;
		lazo_result result = spread_type(n, bytes, &spread);
		if (!result.name) result = piece(from, to, n, at, spread, comm);
		if (result.name) return result;
		TRY(Type_free, &spread);
	}
	return good;
}

// permute sends to one rank and receives from one, -1 for none.
static lazo_result permute(const char *from, char *to, int64_t bytes, int target, int source) {
	for (int64_t at = 0; at < bytes; at += world.limit) {
		int n = (int)least(world.limit, bytes - at);
		lazo_handle sent = 0, received = 0;
		if (source >= 0) TRY(Irecv, to + at, n, world.mpi.byte, source, 0, world.program, &received);
		if (target >= 0) TRY(Isend, from + at, n, world.mpi.byte, target, 0, world.program, &sent);
		if (source >= 0) TRY(Wait, &received, world.mpi.no_status);
		if (target >= 0) TRY(Wait, &sent, world.mpi.no_status);
	}
	return good;
}

lazo_result lazo_max(int64_t *words, size_t count) {
	element e = {world.mpi.i64, world.mpi.op[LAZO_MAX], 1, sizeof *words};
	return all_reduce(words, words, (int64_t)count, e, world.host);
}

lazo_result lazo_broadcast(int root, void *data, size_t size) {
	for (int64_t at = 0; at < (int64_t)size; at += world.limit)
		TRY(Bcast, (char *)data + at, (int)least(world.limit, (int64_t)size - at), world.mpi.byte, root, world.host);
	return good;
}

lazo_result lazo_gather(const void *part, size_t size, void *parts) {
	return moved(gather_piece, part, parts, (int64_t)size, world.host, world.place.size);
}

lazo_result lazo_barrier(void) {
	TRY(Barrier, world.host);
	return good;
}

lazo_result lazo_sum(float *values, size_t count) {
	element e = {world.mpi.f32, world.mpi.op[LAZO_SUM], 1, sizeof *values};
	return all_reduce(values, values, (int64_t)count, e, world.host);
}

// One call of a program.
typedef struct {
	ffi_call *ffi;
	int kind;
	int64_t site, op, group_size;
	const int64_t *groups, *pairs;
	size_t groups_count, pairs_count;
	lazo_handle comm;
	int64_t count; // of arrays
	int64_t rank; // of this process among those that it exchanges with
} call;

static ffi_buffer *in(const call *c, int64_t i) { return c->ffi->args.values[i]; }
static ffi_buffer *out(const call *c, int64_t i) { return c->ffi->results.values[i]; }

static void *fail(const call *c, int code, const char *format, ...) {
	char text[9000];
	int n = snprintf(text, sizeof text, "mpi: rank %d of %d: %s, collective %lld of the program: ", world.place.rank, world.place.size,
		kinds[c->kind], (long long)c->site);
	va_list args;
	va_start(args, format);
	vsnprintf(text + n, sizeof text - (size_t)n, format, args);
	va_end(args);
	ffi_error_create error = {.struct_size = sizeof error, .message = text, .code = code};
	return c->ffi->api->error_create(&error);
}

static void *failed_call(const call *c, lazo_result result) {
	char said[8192];
	lazo_error_text(&world.mpi, result.code, said, sizeof said);
	return fail(c, FFI_INTERNAL, "%s: %s", result.name, said);
}

// attribute finds one by its name. A scalar is an array of one.
static const int64_t *attribute(const ffi_call *ffi, const char *name, int type, size_t *count) {
	size_t size = strlen(name);
	for (int64_t i = 0; i < ffi->attributes.size; i++) {
		const ffi_span *span = ffi->attributes.names[i];
		if (span->size != size || memcmp(span->text, name, size) || ffi->attributes.types[i] != type) continue;
		if (type == FFI_ATTR_SCALAR) {
			const ffi_scalar *scalar = ffi->attributes.values[i];
			*count = 1;
			return scalar->dtype == FFI_S64 ? scalar->value : NULL;
		}
		const ffi_array *array = ffi->attributes.values[i];
		*count = array->size;
		static const int64_t none = 0;
		return array->dtype != FFI_S64 ? NULL : array->size ? array->data : &none;
	}
	return NULL;
}

static void *read_attributes(call *c) {
	size_t one;
	const int64_t *site = attribute(c->ffi, "site", FFI_ATTR_SCALAR, &one);
	c->site = -1;
	if (!site) return fail(c, FFI_INVALID_ARGUMENT, "expected an attribute site of type i64, got none");
	c->site = *site;
	if (c->kind == LAZO_ALL_REDUCE || c->kind == LAZO_REDUCE_SCATTER) {
		const int64_t *op = attribute(c->ffi, "op", FFI_ATTR_SCALAR, &one);
		if (!op) return fail(c, FFI_INVALID_ARGUMENT, "expected an attribute op of type i64, got none");
		if (*op < 0 || *op >= LAZO_OPS)
			return fail(c, FFI_INVALID_ARGUMENT, "attribute op is %lld, expected 0 (sum) to %d (or)", (long long)*op, LAZO_OPS - 1);
		c->op = *op;
	}
	if (c->kind == LAZO_PERMUTE) {
		c->pairs = attribute(c->ffi, "pairs", FFI_ATTR_ARRAY, &c->pairs_count);
		if (!c->pairs) return fail(c, FFI_INVALID_ARGUMENT, "expected an attribute pairs of type array<i64>, got none");
		return NULL;
	}
	c->groups = attribute(c->ffi, "groups", FFI_ATTR_ARRAY, &c->groups_count);
	if (!c->groups) return fail(c, FFI_INVALID_ARGUMENT, "expected an attribute groups of type array<i64>, got none");
	const int64_t *size = attribute(c->ffi, "group_size", FFI_ATTR_SCALAR, &one);
	if (!size) return fail(c, FFI_INVALID_ARGUMENT, "expected an attribute group_size of type i64, got none");
	c->group_size = *size;
	return NULL;
}

// find_group sets the communicator. All ranks call the same programs in the same order, so each list of groups is met by
// all of them at the same point, where they make its communicator together.
static void *find_group(call *c) {
	int64_t ranks = world.place.size;
	for (group *g = world.groups; g; g = g->next)
		if (g->size == c->group_size && g->count == c->groups_count && !memcmp(g->members, c->groups, g->count * sizeof *c->groups)) {
			c->comm = g->comm;
			return NULL;
		}
	if (c->group_size < 1 || (int64_t)c->groups_count != ranks || ranks % c->group_size)
		return fail(c, FFI_INVALID_ARGUMENT, "%zu members in groups of %lld, expected each of the %lld ranks once, in groups of one size: "
			"was the program compiled for another number of processes?", c->groups_count, (long long)c->group_size, (long long)ranks);
	bool all = c->group_size == ranks; // one group in the order of the ranks
	int64_t place = -1;
	for (int64_t i = 0; i < ranks; i++) {
		all = all && c->groups[i] == i;
		if (c->groups[i] == world.place.rank) place = i;
		int64_t times = 0;
		for (int64_t j = 0; j < ranks; j++) times += c->groups[j] == i;
		if (times != 1)
			return fail(c, FFI_INVALID_ARGUMENT, "rank %lld stands %lld times in the groups, expected once", (long long)i, (long long)times);
	}
	c->comm = world.program;
	if (!all) {
		lazo_handle made = 0;
		int code = world.mpi.Comm_split(world.program, (int)(place / c->group_size), (int)(place % c->group_size), &made);
		if (code) return failed_call(c, (lazo_result){"MPI_Comm_split", code});
		if ((code = world.mpi.Comm_set_errhandler(made, world.mpi.errors_return)))
			return failed_call(c, (lazo_result){"MPI_Comm_set_errhandler", code});
		c->comm = made;
	}
	group *g = malloc(sizeof *g + c->groups_count * sizeof *g->members);
	if (!g) return fail(c, FFI_RESOURCE_EXHAUSTED, "no memory for a list of %zu ranks", c->groups_count);
	*g = (group){world.groups, (int64_t *)(g + 1), c->groups_count, c->group_size, c->comm};
	memcpy(g->members, c->groups, c->groups_count * sizeof *g->members);
	world.groups = g;
	return NULL;
}

// same tells whether two shapes are the same behind their first skipped dimensions.
static bool same(const ffi_buffer *a, int64_t skip_a, const ffi_buffer *b, int64_t skip_b) {
	if (a->rank - skip_a != b->rank - skip_b) return false;
	for (int64_t i = skip_a; i < a->rank; i++)
		if (a->dims[i] != b->dims[i - skip_a + skip_b]) return false;
	return true;
}

static void print_shape(const ffi_buffer *b, char *text, size_t size) {
	int n = snprintf(text, size, "%s[", type_name(b->dtype));
	for (int64_t i = 0; i < b->rank && n < (int)size; i++)
		n += snprintf(text + n, size - (size_t)n, i ? ",%lld" : "%lld", (long long)b->dims[i]);
	if (n < (int)size) snprintf(text + n, size - (size_t)n, "]");
}

static bool fits(const call *c, const ffi_buffer *x, const ffi_buffer *y) {
	if (x->dtype != y->dtype) return false;
	switch (c->kind) {
	case LAZO_ALL_GATHER: return y->rank > 0 && y->dims[0] == c->group_size && same(x, 0, y, 1);
	case LAZO_REDUCE_SCATTER: return x->rank > 0 && x->dims[0] == c->group_size && same(x, 1, y, 0);
	case LAZO_ALL_TO_ALL: return x->rank > 0 && x->dims[0] == c->group_size && same(x, 0, y, 0);
	}
	return same(x, 0, y, 0);
}

// misfit says what is wrong with an array.
static void *misfit(const call *c, int64_t i) {
	static const char *const ops[LAZO_OPS] = {"sum", "product", "minimum", "maximum", "and", "or"};
	char x[256], y[256];
	print_shape(in(c, i), x, sizeof x);
	print_shape(out(c, i), y, sizeof y);
	if (!element_size(in(c, i)->dtype)) return fail(c, FFI_INVALID_ARGUMENT, "argument %lld is %s, expected numbers", (long long)i, x);
	if (!fits(c, in(c, i), out(c, i)))
		return fail(c, FFI_INVALID_ARGUMENT, "argument %lld is %s and its result %s, in groups of %lld: they do not fit", (long long)i, x, y,
			(long long)c->group_size);
	return fail(c, FFI_INVALID_ARGUMENT, "argument %lld is %s, which has no %s", (long long)i, x, ops[c->op]);
}

// check_arrays holds what the program gives against what it says.
static void *check_arrays(call *c) {
	const ffi_values *args = &c->ffi->args, *results = &c->ffi->results;
	if (args->size != results->size || args->size < 1)
		return fail(c, FFI_INVALID_ARGUMENT, "%lld arguments and %lld results, expected the same number of both, the last a token",
			(long long)args->size, (long long)results->size);
	for (int64_t i = 0; i < args->size; i++)
		if (args->types[i] != FFI_BUFFER || results->types[i] != FFI_BUFFER)
			return fail(c, FFI_INVALID_ARGUMENT, "argument or result %lld is no array", (long long)i);
	c->count = args->size - 1;
	if (in(c, c->count)->dtype != FFI_TOKEN || out(c, c->count)->dtype != FFI_TOKEN)
		return fail(c, FFI_INVALID_ARGUMENT, "the last argument and result are %s and %s, expected tokens: nothing else keeps exchanges in order",
			type_name(in(c, c->count)->dtype), type_name(out(c, c->count)->dtype));
	for (int64_t i = 0; i < c->count; i++) {
		element e;
		bool is_reduced = c->kind == LAZO_ALL_REDUCE || c->kind == LAZO_REDUCE_SCATTER;
		if (!element_size(in(c, i)->dtype) || !fits(c, in(c, i), out(c, i)) || (is_reduced && !reduced(in(c, i)->dtype, c->op, &e)))
			return misfit(c, i);
	}
	return NULL;
}

static int64_t elements(const ffi_buffer *b) {
	int64_t n = 1;
	for (int64_t i = 0; i < b->rank; i++) n *= b->dims[i];
	return n;
}

static int64_t bytes(const ffi_buffer *b) { return elements(b) * element_size(b->dtype); }

static bool reserve(size_t size) {
	if (size <= world.block_size) return true;
	char *block = realloc(world.block, size);
	if (!block) return false;
	world.block = block;
	world.block_size = size;
	return true;
}

// part_bytes is the size of what one rank sends to another or to all.
static int64_t part_bytes(const call *c, const ffi_buffer *x) {
	return c->kind == LAZO_REDUCE_SCATTER || c->kind == LAZO_ALL_TO_ALL ? bytes(x) / c->group_size : bytes(x);
}

// exchange does one array, or what several were packed to. n is the size of a part in bytes.
static lazo_result exchange(const call *c, const void *from, void *to, int64_t n, int dtype, int target, int source) {
	element e = {0};
	switch (c->kind) {
	case LAZO_ALL_REDUCE:
		reduced(dtype, c->op, &e);
		return all_reduce(from, to, n / e.size, e, c->comm);
	case LAZO_REDUCE_SCATTER:
		reduced(dtype, c->op, &e);
		return reduce_scatter(from, to, n / e.size, e, c->comm, c->group_size);
	case LAZO_ALL_GATHER: return moved(gather_piece, from, to, n, c->comm, c->group_size);
	case LAZO_ALL_TO_ALL: return moved(all_to_all_piece, from, to, n, c->comm, c->group_size);
	}
	if (source < 0) memset(to, 0, (size_t)n);
	if (source == world.place.rank) { // then the target is this rank too
		if (to != from) memcpy(to, from, (size_t)n);
		return good;
	}
	return permute(from, to, n, target, source);
}

// find_pair reads to whom this rank sends, and from whom it receives.
static void *find_pair(const call *c, int *target, int *source) {
	*target = *source = -1;
	if (c->pairs_count % 2) return fail(c, FFI_INVALID_ARGUMENT, "%zu numbers in pairs, expected sources and targets in turns", c->pairs_count);
	for (size_t i = 0; i < c->pairs_count; i += 2) {
		int64_t from = c->pairs[i], to = c->pairs[i + 1];
		if (from < 0 || to < 0 || from >= world.place.size || to >= world.place.size)
			return fail(c, FFI_INVALID_ARGUMENT, "pair %lld to %lld, expected ranks of %d", (long long)from, (long long)to, world.place.size);
		for (size_t j = 0; j < i; j += 2)
			if (c->pairs[j] == from || c->pairs[j + 1] == to)
				return fail(c, FFI_INVALID_ARGUMENT, "pair %lld to %lld has the source or the target of another pair", (long long)from, (long long)to);
		if (from == world.place.rank) *target = (int)to;
		if (to == world.place.rank) *source = (int)from;
	}
	return NULL;
}

enum { REGION = 4 << 20 }; // bytes that are packed into one exchange

// pack copies the parts of arrays into the block, or out of it: rank after rank, and array after array within. parts is
// for how many ranks there are parts.
static void pack(const call *c, const int64_t *list, int64_t n, int64_t parts, int64_t total, char *block, bool back) {
	int64_t offset = 0;
	for (int64_t i = 0; i < n; i++) {
		ffi_buffer *array = back ? out(c, list[i]) : in(c, list[i]);
		int64_t size = bytes(array) / parts;
		for (int64_t p = 0; p < parts; p++) {
			char *here = (char *)array->data + p * size, *there = block + p * total + offset;
			if (back) memcpy(here, there, (size_t)size);
			else memcpy(there, here, (size_t)size);
		}
		offset += size;
	}
}

// exchange_packed does several small arrays as one.
static void *exchange_packed(const call *c, const int64_t *list, int64_t n, int64_t total, int target, int source) {
	int64_t sent = c->kind == LAZO_REDUCE_SCATTER || c->kind == LAZO_ALL_TO_ALL ? c->group_size : 1;
	int64_t received = c->kind == LAZO_ALL_GATHER || c->kind == LAZO_ALL_TO_ALL ? c->group_size : 1;
	bool in_place = c->kind == LAZO_ALL_REDUCE || c->kind == LAZO_ALL_TO_ALL;
	if (!reserve((size_t)(total * (in_place ? sent : sent + received))))
		return fail(c, FFI_RESOURCE_EXHAUSTED, "no memory to pack %lld arrays of %lld bytes together", (long long)n, (long long)total);
	char *to = in_place ? world.block : world.block + total * sent;
	pack(c, list, n, sent, total, world.block, false);
	lazo_result result = exchange(c, world.block, to, total, in(c, list[0])->dtype, target, source);
	if (result.name) return failed_call(c, result);
	pack(c, list, n, received, total, to, true);
	return NULL;
}

static void *exchange_arrays(call *c) {
	int target = -1, source = -1;
	void *error = c->kind == LAZO_PERMUTE ? find_pair(c, &target, &source) : find_group(c);
	if (error) return error;
	bool typed = c->kind == LAZO_ALL_REDUCE || c->kind == LAZO_REDUCE_SCATTER;
	int64_t small[256], n = 0, total = 0;
	for (int64_t i = 0; i < c->count; i++) {
		int64_t size = part_bytes(c, in(c, i));
		if (!size) continue;
		bool packs = size <= world.packed && c->count > 1;
		bool full = n == 256 || total + size > REGION || (n && typed && in(c, small[0])->dtype != in(c, i)->dtype);
		if (packs && n && full) {
			if ((error = exchange_packed(c, small, n, total, target, source))) return error;
			n = total = 0;
		}
		if (packs) {
			small[n++] = i;
			total += size;
			continue;
		}
		const void *from = in(c, i)->data;
		void *to = out(c, i)->data;
		if (c->kind == LAZO_PERMUTE && from == to) { // what is sent must stay until it has gone
			if (!reserve((size_t)size)) return fail(c, FFI_RESOURCE_EXHAUSTED, "no memory for a copy of %lld bytes", (long long)size);
			from = memcpy(world.block, from, (size_t)size);
		}
		lazo_result result = exchange(c, from, to, size, in(c, i)->dtype, target, source);
		if (result.name) return failed_call(c, result);
	}
	return n ? exchange_packed(c, small, n, total, target, source) : NULL;
}

// XLA's programs for CPUs take subnormal numbers for 0. Not all of its threads are set so, and ranks that differ in it would
// come to other bits.
#if defined __x86_64__
#include <xmmintrin.h>
typedef unsigned int mode;
static mode flush_subnormals(void) {
	mode before = _mm_getcsr();
	_mm_setcsr(before | 0x8040);
	return before;
}
static void restore(mode before) { _mm_setcsr(before); }
#elif defined __aarch64__
typedef uint64_t mode;
static void restore(mode before) { __asm__ volatile("msr fpcr, %0" : : "r"(before)); }
static mode flush_subnormals(void) {
	mode before;
	__asm__ volatile("mrs %0, fpcr" : "=r"(before));
	restore(before | 1 << 24);
	return before;
}
#else
#error "how this processor takes subnormal numbers for 0 is not known"
#endif

// runs tells whether XLA calls a handler to run it, and not to ask about it.
static bool runs(ffi_call *ffi) {
	for (ffi_extension *e = ffi->extension_start; e; e = e->next)
		if (e->type == FFI_EXTENSION_METADATA) { // XLA asks which version this was made for: the answer is its own
			ffi_metadata *metadata = ((ffi_metadata_extension *)e)->metadata;
			metadata->version = ffi->api->version;
			metadata->traits = 0;
			return false;
		}
	return ffi->stage == FFI_STAGE_EXECUTE;
}

static void *handle(ffi_call *ffi, int kind) {
	if (!runs(ffi)) return NULL;
	call c = {.ffi = ffi, .kind = kind};
	void *error = read_attributes(&c);
	if (error) return error;
	if (!world.ready) return fail(&c, FFI_FAILED_PRECONDITION, "this process is in no job of MPI, or has left it");
	if ((error = check_arrays(&c))) return error;
	if (atomic_flag_test_and_set(&record.busy))
		return fail(&c, FFI_FAILED_PRECONDITION, "collective %lld (%s) is under way: two programs run at once, and other ranks could meet them in "
			"another order: wait for one before the next is started", (long long)atomic_load(&record.site), kinds[atomic_load(&record.kind)]);
	int64_t size = 0;
	for (int64_t i = 0; i < c.count; i++) size += bytes(in(&c, i));
	atomic_store(&record.site, c.site);
	atomic_store(&record.bytes, size);
	atomic_store(&record.kind, kind);
	atomic_store(&record.since, lazo_clock());
	atomic_fetch_add(&record.begun, 1);
	mode before = flush_subnormals();
	error = exchange_arrays(&c);
	restore(before);
	atomic_fetch_add(&record.ended, 1);
	atomic_flag_clear(&record.busy);
	return error;
}

void *lazo_all_reduce(void *call) { return handle(call, LAZO_ALL_REDUCE); }
void *lazo_all_gather(void *call) { return handle(call, LAZO_ALL_GATHER); }
void *lazo_reduce_scatter(void *call) { return handle(call, LAZO_REDUCE_SCATTER); }
void *lazo_all_to_all(void *call) { return handle(call, LAZO_ALL_TO_ALL); }
void *lazo_collective_permute(void *call) { return handle(call, LAZO_PERMUTE); }

void *lazo_rank(void *call) {
	ffi_call *ffi = call;
	if (!runs(ffi)) return NULL;
	const ffi_buffer *to = ffi->results.size == 1 && ffi->results.types[0] == FFI_BUFFER ? ffi->results.values[0] : NULL;
	if (!world.ready || !to || to->dtype != FFI_U32 || to->rank) {
		ffi_error_create error = {.struct_size = sizeof error, .code = FFI_FAILED_PRECONDITION,
			.message = world.ready ? "mpi: rank: expected one result of type u32[]" : "mpi: rank: this process is in no job of MPI, or has left it"};
		return ffi->api->error_create(&error);
	}
	*(uint32_t *)to->data = (uint32_t)world.place.rank;
	return NULL;
}
