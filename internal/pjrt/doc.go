// Package pjrt is lazo's cgo binding to PJRT's C API.
//
// [Load] returns a [Plugin], [Plugin.NewClient] a [Client], [Device.Put] a [Buffer], [Client.Compile] an
// [Executable]. [Executable.Execute] runs once, a [Call] many times.
//
// # Ownership
//
// Close all but plugins and devices. Use after Close, and a second Close, return [ErrClosed]. If another goroutine
// still uses the value, its last use frees the memory. A client's Close closes all that it made and waits for running
// calls.
//
// The garbage collector, which does not know the size of device memory, closes forgotten values of a client; [Live]
// counts them.
//
// A run that replaces a buffer needs it exclusively: concurrent uses return [ErrBusy] and do nothing. All else may be
// used concurrently.
//
// Calls use host memory until they return, except [Device.Share], [Buffer.StartToHost], [Buffer.View] and
// [Call.StartShared].
//
// # Untrusted files
//
// [Inspect] and [Load] run the library's code, which can end the process. Package probe tries it in a child process.
package pjrt
