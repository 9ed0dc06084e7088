#define _GNU_SOURCE
#include "crash.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static const struct fault {
	int number;
	const char *name;
} faults[] = {
	{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"},
	{SIGABRT, "SIGABRT"}, {SIGTRAP, "SIGTRAP"}, {SIGSYS, "SIGSYS"},
};
enum { FAULTS = sizeof faults / sizeof faults[0] };

// A thread of Go's that runs a call of the plugin blocks the same signals as the threads of the plugin. This tells them apart.
static _Thread_local volatile sig_atomic_t inside;

// The handlers of all signals before the running calls of libraries. A library that takes a signal (UCX, of MPI, takes
// SIGHUP and faults) would run its handler on a goroutine's stack.
static struct sigaction kept[NSIG];
static int calls;
static pthread_mutex_t keeping = PTHREAD_MUTEX_INITIALIZER;

static void handle(int number, siginfo_t *info, void *context);

// is_own: it is Go's handler, which SIGURG always has, or the one before it.
static int is_own(const struct sigaction *a) {
	static void (*go)(int, siginfo_t *, void *);
	if (!go) go = kept[SIGURG].sa_sigaction;
	return a->sa_flags & SA_ONSTACK && (a->sa_sigaction == go || a->sa_sigaction == handle);
}

static void keep_handlers(void) {
	pthread_mutex_lock(&keeping);
	int first = !calls++;
	for (int number = 1; number < NSIG; number++) {
		struct sigaction now;
		if (!sigaction(number, 0, &now) && (first || is_own(&now))) kept[number] = now; // signal.Notify may run at the same time
	}
	pthread_mutex_unlock(&keeping);
}

static void put_handlers_back(void) {
	pthread_mutex_lock(&keeping);
	calls--;
	for (int number = 1; number < NSIG; number++) {
		struct sigaction now, *before = &kept[number];
		if (sigaction(number, 0, &now) || is_own(&now)) continue;
		if (now.sa_sigaction != before->sa_sigaction || now.sa_flags != before->sa_flags) sigaction(number, before, 0);
	}
	pthread_mutex_unlock(&keeping);
}

int lazo_block_signals(sigset_t *old) {
	sigset_t most;
	sigfillset(&most);
	for (int i = 0; i < FAULTS; i++) sigdelset(&most, faults[i].number);
	int failed = pthread_sigmask(SIG_SETMASK, &most, old);
	if (failed) return failed;
	inside++;
	keep_handlers();
	return 0;
}

int lazo_restore_signals(const sigset_t *old) {
	put_handlers_back();
	int failed = pthread_sigmask(SIG_SETMASK, old, 0);
	if (!failed) inside--;
	return failed;
}

// What is being compiled. The memory is static, because the handler is for a process that may have no other.
enum { NAMES = 4, LONGEST = 80 };
static struct {
	atomic_int state; // of the names below
	char text[LONGEST + 1];
} names[NAMES];
enum { FREE, WRITTEN, COMPILED };

int lazo_begin(const char *name, size_t size) {
	for (int i = 0; i < NAMES; i++) {
		int state = FREE;
		if (!atomic_compare_exchange_strong(&names[i].state, &state, WRITTEN)) continue;
		if (size > LONGEST) size = LONGEST;
		memcpy(names[i].text, name, size);
		names[i].text[size] = 0;
		atomic_store(&names[i].state, COMPILED);
		return i;
	}
	return -1;
}

void lazo_end(int number) {
	if (number >= 0) atomic_store(&names[number].state, FREE);
}

// Go's handlers, in the order of faults.
static struct sigaction before[FAULTS];

static char *put(char *at, const char *end, const char *text) {
	while (*text && at < end) *at++ = *text++;
	return at;
}

// say writes one line. It calls write and poll alone: both may be called in a handler, and neither needs memory.
static void say(const char *signal) {
	char line[1024];
	char *at = line;
	const char *end = line + sizeof line;
	at = put(at, end, "lazo: a thread of the XLA plugin got ");
	at = put(at, end, signal);
	const char *between = " while the plugin compiled ";
	for (int i = 0; i < NAMES; i++) {
		if (atomic_load(&names[i].state) != COMPILED) continue;
		at = put(at, end, between);
		at = put(at, end, names[i].text);
		between = ", ";
	}
	at = put(at, end, ". Go has no trace of such a thread. If the memory of the process is limited (ulimit -v, a container), the likely cause is "
		"that it is used up: raise the limit. `lazo doctor` shows the limits\n");
	// A full pipe that nobody reads must not keep the process.
	struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
	if (poll(&fd, 1, 1000) != 1) return;
	for (const char *from = line; from < at;) {
		ssize_t n = write(STDERR_FILENO, from, at - from);
		if (n < 0 && errno == EINTR) continue;
		if (n <= 0) return;
		from += n;
	}
}

// A thread is the plugin's if it blocks a signal that no thread of Go's blocks for long (SIGURG, by which Go stops its
// goroutines), and is not one of Go's in lazo_block_signals. A signal stack would not tell: a thread of the plugin that has
// called Go keeps the one that Go gave it, and Go's handler has no trace of that thread either.
static void handle(int number, siginfo_t *info, void *context) {
	int kept = errno;
	int i = 0;
	while (i < FAULTS - 1 && faults[i].number != number) i++;
	if (!inside && sigismember(&((ucontext_t *)context)->uc_sigmask, SIGURG) == 1) say(faults[i].name);
	errno = kept;
	before[i].sa_sigaction(number, info, context);
}

void lazo_speak(void) {
	static int done;
	if (done++) return; // a plugin that has put its own handler before this one calls this one: the two would call each other for ever
	for (int i = 0; i < FAULTS; i++) {
		struct sigaction now;
		// Without SA_SIGINFO it is the default or none, as in a process that is to die silently.
		if (sigaction(faults[i].number, 0, &now) || !(now.sa_flags & SA_SIGINFO)) continue;
		before[i] = now;
		now.sa_sigaction = handle; // with Go's flags and mask: on the signal stack of a thread that has one
		sigaction(faults[i].number, &now, 0);
	}
}
