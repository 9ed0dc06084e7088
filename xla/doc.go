// Package xla opens PJRT plugins as GoMLX backends.
//
// It downloads nothing without [InstallIfMissing]. Opening a plugin sets environment variables that the user has not:
// TF_CPP_MIN_LOG_LEVEL ([Log]); for CUDA the folder of ptxas in XLA_FLAGS; for libtpu without a TPU, TPU_SKIP_MDS_QUERY
// and TPU_WORKER_HOSTNAMES.
//
// The CPU plugin and Go's runtime reserve up to 3 GiB of addresses: a lower limit (ulimit -v) ends in an error or a
// message of Go's runtime, cgo or XLA. Over a cgroup's limit, the kernel kills the process silently. lazo doctor shows
// both limits, [Program.Memory] a program's need.
package xla
