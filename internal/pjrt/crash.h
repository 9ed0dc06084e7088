// What the process says when a thread of the plugin gets the signal of a fault.
#ifndef LAZO_PJRT_CRASH_H_
#define LAZO_PJRT_CRASH_H_

#include <signal.h>

// lazo_block_signals has this thread take no signals but those of faults. lazo_restore_signals ends that. Threads that
// start between the two inherit it. Handlers that a library installs between the two are replaced by those before.
int lazo_block_signals(sigset_t *old);
int lazo_restore_signals(const sigset_t *old);

// lazo_speak puts a handler before Go's for the signals of faults. It changes nothing where the handler
// is not Go's. The second call does nothing. Calls are made one after another.
void lazo_speak(void);

// lazo_begin notes what is compiled from now on, and gives the number for lazo_end; -1 if there is no place to note it.
int lazo_begin(const char *name, size_t size);
void lazo_end(int number);

#endif
