// Package xla opens PJRT plugins and gives each as a GoMLX backend.
//
// Nothing is downloaded unless [InstallIfMissing] asks for it. Opening a plugin sets the environment variables that
// [pjrt.Environment] lists, where the user has not set them.
//
// The plugin for the CPU and Go's runtime take up to 3 GiB of addresses for the smallest program, nearly all of them
// never touched: under less (ulimit -v) an error, or the last message of Go's runtime, of cgo or of XLA, says that
// there was no memory. A process that passes a cgroup's limit of memory is killed by the kernel without a message; lazo
// doctor shows both limits, and [Program.Memory] what a program needs.
package xla
