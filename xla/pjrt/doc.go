// Package pjrt is lazo's cgo binding to PJRT's C API. Only this package and xla/mpi use cgo.
//
// [Load] returns a [Plugin], [Plugin.NewClient] a [Client] with its devices, [Device.Put] a [Buffer], [Client.Compile]
// an [Executable]. [Executable.Execute] runs an executable once; a [Call] is prepared once and runs many times.
//
// # Ownership
//
// Close clients, buffers, executables, calls, events, views and topologies that you receive. Plugins and devices need
// no Close. Any use after Close, and a second Close, return [ErrClosed]. If another goroutine still uses the value, its
// last use frees the memory. A client's Close closes everything made with it and waits for running calls.
//
// The garbage collector eventually closes forgotten values of a client; [Live] counts them and all others. Do not rely
// on it: it does not know the size of device memory.
//
// A run needs a buffer that it replaces exclusively: concurrent uses return [ErrBusy] and do nothing. All else may be
// used concurrently.
//
// Calls use host memory only until they return. Exceptions say so ([Device.Share], [Buffer.StartToHost], [Buffer.View],
// [Call.StartShared]).
//
// # Untrusted files
//
// [Inspect] and [Load] run code of the library. A damaged library can end the process: try it in a child process first,
// as package probe does.
package pjrt
