// Package launch starts a job's ranks on this machine, by mpirun or, without MPI, as processes that package dist joins.
// It forwards signals, separates the ranks' output, and restarts a failed job, as `lazo run`.
package launch
