package pjrt

// #include <signal.h>
// #include <pthread.h>
//
// static int lazo_block_signals(sigset_t *old) {
//   static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
//   sigset_t most;
//   sigfillset(&most);
//   for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) sigdelset(&most, faults[i]);
//   return pthread_sigmask(SIG_SETMASK, &most, old);
// }
// static int lazo_restore_signals(const sigset_t *old) { return pthread_sigmask(SIG_SETMASK, old, 0); }
import "C"

import "runtime"

// WithoutSignals runs f on a thread that takes no signals, and so do the threads that f starts in C: they inherit it.
// A plugin must be loaded and its client made like this. XLA's matrix product for the CPU (oneDNN's AVX-512 kernel)
// keeps its stack pointer in memory from malloc for a while; a signal that arrives then, as each tick of Go's CPU
// profiler does, has its frame written there, over other people's memory. Go's own threads take signals on a stack of
// their own, XLA's have none.
//
// Those that a fault raises are taken: the kernel ends a process that blocks one at once, and Go's handler could say
// nothing of where it was. (A stack overflow on a thread of XLA's own is silent still: it leaves the handler no stack.)
func WithoutSignals(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var old C.sigset_t
	if C.lazo_block_signals(&old) == 0 {
		defer C.lazo_restore_signals(&old)
	}
	f()
}
