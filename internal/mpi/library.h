// The functions and values of MPI that lazo uses, found in a library at run time. Implementations agree on neither the
// type of a handle (a pointer in Open MPI and MPI 5's ABI, an int in MPICH) nor on the values of constants. A handle is
// kept as a uintptr_t here, of which a function that expects an int reads the lower half.
#ifndef LAZO_MPI_LIBRARY_H_
#define LAZO_MPI_LIBRARY_H_

#include <stddef.h>
#include <stdint.h>

typedef uintptr_t lazo_handle;

// An operation over elements, as MPI_Op_create takes it.
typedef void lazo_operation(void *in, void *inout, int *length, void *type);

#define LAZO_MPI_FUNCTIONS(F) \
	F(Get_library_version, (char *text, int *length)) \
	F(Initialized, (int *flag)) \
	F(Init_thread, (int *argc, char ***argv, int required, int *provided)) \
	F(Finalize, (void)) \
	F(Abort, (lazo_handle comm, int code)) \
	F(Error_string, (int code, char *text, int *length)) \
	F(Comm_rank, (lazo_handle comm, int *rank)) \
	F(Comm_size, (lazo_handle comm, int *size)) \
	F(Comm_dup, (lazo_handle comm, lazo_handle *made)) \
	F(Comm_split, (lazo_handle comm, int color, int key, lazo_handle *made)) \
	F(Comm_split_type, (lazo_handle comm, int type, int key, lazo_handle info, lazo_handle *made)) \
	F(Comm_free, (lazo_handle *comm)) \
	F(Comm_set_errhandler, (lazo_handle comm, lazo_handle handler)) \
	F(Op_create, (lazo_operation *function, int commutes, lazo_handle *made)) \
	F(Type_contiguous, (int count, lazo_handle of, lazo_handle *made)) \
	F(Type_create_resized, (lazo_handle of, intptr_t lower, intptr_t extent, lazo_handle *made)) \
	F(Type_commit, (lazo_handle *type)) \
	F(Type_free, (lazo_handle *type)) \
	F(Allreduce, (const void *from, void *to, int count, lazo_handle type, lazo_handle op, lazo_handle comm)) \
	F(Reduce, (const void *from, void *to, int count, lazo_handle type, lazo_handle op, int root, lazo_handle comm)) \
	F(Reduce_scatter_block, (const void *from, void *to, int count, lazo_handle type, lazo_handle op, lazo_handle comm)) \
	F(Allgather, (const void *from, int n, lazo_handle type, void *to, int m, lazo_handle to_type, lazo_handle comm)) \
	F(Alltoall, (const void *from, int n, lazo_handle type, void *to, int m, lazo_handle to_type, lazo_handle comm)) \
	F(Isend, (const void *from, int count, lazo_handle type, int to, int tag, lazo_handle comm, lazo_handle *request)) \
	F(Irecv, (void *to, int count, lazo_handle type, int from, int tag, lazo_handle comm, lazo_handle *request)) \
	F(Wait, (lazo_handle *request, void *status)) \
	F(Bcast, (void *data, int count, lazo_handle type, int root, lazo_handle comm)) \
	F(Barrier, (lazo_handle comm))

enum { LAZO_OPEN_MPI = 1, LAZO_MPICH, LAZO_ABI };

enum { LAZO_SUM, LAZO_PRODUCT, LAZO_MIN, LAZO_MAX, LAZO_AND, LAZO_OR, LAZO_OPS };

typedef struct {
#define LAZO_FIELD(name, params) int (*name) params;
	LAZO_MPI_FUNCTIONS(LAZO_FIELD)
#undef LAZO_FIELD
	lazo_handle world, errors_return, no_info;
	lazo_handle byte, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64;
	lazo_handle op[LAZO_OPS];
	void *in_place, *no_status;
	int thread_multiple, type_shared;
	void *library;
	int flavour;
} lazo_mpi;

// lazo_resolve fills the table from a library that was loaded. It gives the name that the library lacks, null for none.
const char *lazo_resolve(lazo_mpi *mpi, void *library, int flavour);

// lazo_run_exit runs what the library has for the end of the process. Go ends without: MPICH 5, which tells its launcher
// there that the process is done, would have it taken for one that crashed, and the other ranks killed.
void lazo_run_exit(const lazo_mpi *mpi);

#endif
