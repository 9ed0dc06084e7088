// The process's part in a job of MPI: what programs exchange on XLA's threads, and what the host does. There is one in a
// process, since MPI is initialized once.
#ifndef LAZO_MPI_EXCHANGE_H_
#define LAZO_MPI_EXCHANGE_H_

#include "library.h"

// What a call of MPI came to: the function that failed and its code, name null for none.
typedef struct {
	const char *name;
	int code;
} lazo_result;

enum { LAZO_ALL_REDUCE, LAZO_ALL_GATHER, LAZO_REDUCE_SCATTER, LAZO_ALL_TO_ALL, LAZO_PERMUTE, LAZO_KINDS };

typedef struct {
	uint64_t begun, ended; // exchanges
	int64_t site, bytes, since; // of the last that began; since in nanoseconds of CLOCK_MONOTONIC
	int kind;
} lazo_record;

typedef struct {
	int rank, size, local_rank, local_size;
	int threads; // what was given: 1 for MPI_THREAD_MULTIPLE
} lazo_place;

// lazo_initialized tells whether MPI was initialized in this process before.
lazo_result lazo_initialized(const lazo_mpi *mpi, int *flag);

// lazo_init initializes MPI and makes the communicators. Without MPI_THREAD_MULTIPLE it finalizes at once.
lazo_result lazo_init(const lazo_mpi *mpi, lazo_place *place);
lazo_result lazo_finalize(void);

// lazo_abort ends the whole job.
void lazo_abort(int code);

// lazo_error_text writes MPI's words for a code.
void lazo_error_text(const lazo_mpi *mpi, int code, char *text, size_t size);

// What the host does, on a communicator of its own.
lazo_result lazo_max(int64_t *words, size_t count);
lazo_result lazo_broadcast(int root, void *data, size_t size);
lazo_result lazo_gather(const void *part, size_t size, void *parts);
lazo_result lazo_barrier(void);

lazo_record lazo_now(void);
const char *lazo_kind(int kind); // its name
int64_t lazo_clock(void);

// The handlers that programs call, as XLA_FFI_Handler.
void *lazo_all_reduce(void *call);
void *lazo_all_gather(void *call);
void *lazo_reduce_scatter(void *call);
void *lazo_all_to_all(void *call);
void *lazo_collective_permute(void *call);
void *lazo_rank(void *call); // gives the rank as u32[]; exchanges nothing

// lazo_set_limits sets how many elements go into one call of MPI, and how large an array may be to be packed with others;
// 0 leaves one as it is.
void lazo_set_limits(int64_t elements, int64_t packed);

// lazo_sum sums 32-bit floats over all ranks, in place.
lazo_result lazo_sum(float *values, size_t count);

#endif
