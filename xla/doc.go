// Package xla opens PJRT plugins as GoMLX backends.
//
// It downloads nothing without [InstallIfMissing]. Opening a plugin sets the variables of [pjrt.Environment] that the
// user has not.
//
// The CPU plugin and Go's runtime reserve up to 3 GiB of addresses: a lower limit (ulimit -v) ends in an error or a
// message of Go's runtime, cgo or XLA. Over a cgroup's limit, the kernel kills the process silently. lazo doctor shows
// both limits, [Program.Memory] a program's need.
package xla
