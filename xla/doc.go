// Package xla opens PJRT plugins as GoMLX backends.
//
// It downloads nothing without [InstallIfMissing]. Opening a plugin sets the variables of [pjrt.Environment], unless
// the user has.
//
// The CPU plugin and Go's runtime reserve up to 3 GiB of addresses. A lower limit (ulimit -v) ends in an error, or a
// message of Go's runtime, cgo or XLA. Over a cgroup's limit, the kernel kills the process without a message. lazo
// doctor shows both limits, [Program.Memory] a program's need.
package xla
