// Package pjrt is lazo's binding to PJRT's C API. It and xla/mpi are the only packages that use cgo.
//
// [Load] gives a [Plugin], [Plugin.NewClient] a [Client] with its devices, [Device.Put] a [Buffer], [Client.Compile] an
// [Executable]. An executable runs by [Executable.Execute], or, prepared once and run many times, as a [Call].
//
// # Ownership
//
// Clients, buffers, executables, calls, events and views have a Close, for the caller that got them. A second Close,
// and any use after it, give [ErrClosed]. A Close while another goroutine uses the value lets that use end well; the
// last use frees the memory. The Close of a client closes everything that was made with it and waits for what is under
// way. Plugins and devices need none.
//
// What was not closed, the garbage collector closes at some time; [Live] counts that, and all that exists. Do not rely
// on it: it does not know how much a device's memory is worth.
//
// A buffer that a run replaces is used by that run alone: another use at the same time gives [ErrBusy], and does
// nothing. All else may be used by several goroutines at once.
//
// A call uses the host memory that it is given until it returns; functions that keep it longer say so ([Device.Share],
// [Buffer.StartToHost], [Buffer.View]).
//
// # Untrusted files
//
// [Inspect] and [Load] run code of the library they are given, and a damaged library can end the process: try it in a
// child first, as package probe does.
package pjrt
