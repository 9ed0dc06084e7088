// In front of a library of MPI: all is its own, but that it says of threads that one at a time may call it. For
// join_fault_test.go.
int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided);

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
	int code = PMPI_Init_thread(argc, argv, required, provided);
	*provided = 2; // MPI_THREAD_SERIALIZED
	return code;
}
