// A library of MPI for one process that does nothing, for library_test.go. TEXT is what it says that it is, THREADS the
// level that it gives; LACKS leaves a function out.
#include <string.h>

#define STUB(name) int MPI_##name(void) { return 0; }
STUB(Finalize) STUB(Abort) STUB(Comm_dup) STUB(Comm_split) STUB(Comm_split_type) STUB(Comm_free) STUB(Comm_set_errhandler)
STUB(Op_create) STUB(Type_contiguous) STUB(Type_create_resized) STUB(Type_commit) STUB(Type_free) STUB(Allreduce) STUB(Reduce)
STUB(Reduce_scatter_block) STUB(Allgather) STUB(Alltoall) STUB(Isend) STUB(Irecv) STUB(Wait) STUB(Bcast) STUB(Initialized)
#ifndef LACKS
STUB(Barrier)
#endif

static int copy(const char *from, char *to, int *length) {
	strcpy(to, from);
	*length = (int)strlen(from);
	return 0;
}

int MPI_Get_library_version(char *text, int *length) { return copy(TEXT, text, length); }
int MPI_Error_string(int code, char *text, int *length) { return copy(code == 7 ? "no such rank" : "", text, length); }
int MPI_Comm_rank(void *comm, int *rank) { return *rank = 0; }
int MPI_Comm_size(void *comm, int *size) { return *size = 1, 0; }
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
	*provided = THREADS;
#ifdef FAILS
	return FAILS;
#endif
	return 0;
}
