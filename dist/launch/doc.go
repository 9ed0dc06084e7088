// Package launch starts the ranks of a job on this machine: by an mpirun, that which `lazo install mpi` brought or
// another, or without MPI as processes that package dist joins by their control connections. It passes signals on,
// keeps the output of the ranks apart, and starts a job that failed anew. `lazo run` is this package on the command
// line; tests run themselves over several ranks by it.
package launch
