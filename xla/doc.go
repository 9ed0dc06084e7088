// Package xla opens PJRT plugins as GoMLX backends.
//
// It downloads nothing without [InstallIfMissing]. Opening a plugin sets those variables of [pjrt.Environment] that the
// user has not set.
//
// The CPU plugin and Go's runtime reserve up to 3 GiB of addresses, nearly all untouched. Below that (ulimit -v), an
// error or a last message of Go's runtime, cgo or XLA reports missing memory. The kernel kills a process over its
// cgroup limit without a message. lazo doctor shows both limits, [Program.Memory] a program's need.
package xla
