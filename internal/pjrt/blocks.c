#define _GNU_SOURCE
#include "blocks.h"

#include <errno.h>

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

// A block is large from LARGE bytes on; smaller ones malloc keeps well itself. A request is met by a kept block that is
// larger by one part in SLACK at most. A block goes when PASSED others of half its size and more were kept after it.
enum { LARGE = 1 << 20, SLACK = 8, SLOTS = 64, PASSED = 16 };

// The plugin frees what a run took a moment after it says that the run has ended. To touch the pages of a new block of
// HUGE bytes takes more than ten times the nanoseconds of WAIT, for which a request waits for such a moment to pass.
enum { HUGE = 32 << 20, WAIT = 1000000 };

// All blocks are malloc's own, with its own size before them. So a block may come from anywhere and be freed by anyone;
// one that is freed elsewhere is not kept, and nothing else.
static struct {
	pthread_mutex_t mutex; // guards the rest
	pthread_cond_t freed; // a huge block was; its clock is the monotonic one
	struct block {
		void *at;
		size_t size;
		int passed; // how many others of half its size and more were kept after it
	} kept[SLOTS];
	lazo_block_counts counts;
} blocks = {.mutex = PTHREAD_MUTEX_INITIALIZER};

// use counts a block that is in use from now on.
static void use(size_t size) {
	blocks.counts.used += size;
	if (blocks.counts.used > blocks.counts.most) blocks.counts.most = blocks.counts.used;
}

static void unuse(size_t size) {
	blocks.counts.used -= size < blocks.counts.used ? size : blocks.counts.used; // it may have come from elsewhere
}

// take empties a place in the list.
static void *take(struct block *b) {
	void *at = b->at;
	blocks.counts.kept -= b->size;
	b->at = NULL;
	return at;
}

// kept gives the smallest kept block that meets a request, or null.
static void *kept(size_t align, size_t size) {
	struct block *best = NULL;
	for (struct block *b = blocks.kept; b < blocks.kept + SLOTS; b++)
		if (b->at && b->size >= size && b->size - size <= size / SLACK && (uintptr_t)b->at % align == 0 &&
			(!best || b->size < best->size))
			best = b;
	if (!best) return NULL;
	use(best->size);
	blocks.counts.reused++;
	return take(best);
}

// allocate gives a large block of memory, or null. align is a power of two.
static void *allocate(size_t align, size_t size) {
	pthread_mutex_lock(&blocks.mutex);
	void *at = kept(align, size);
	if (!at && size >= HUGE && blocks.counts.used >= size) {
		struct timespec until;
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += (until.tv_nsec + WAIT) / 1000000000, until.tv_nsec = (until.tv_nsec + WAIT) % 1000000000;
		while (!at && !pthread_cond_timedwait(&blocks.freed, &blocks.mutex, &until)) at = kept(align, size);
	}
	pthread_mutex_unlock(&blocks.mutex);
	if (at) return at;
	if (align <= _Alignof(max_align_t))
		at = malloc(size);
	else if (posix_memalign(&at, align, size))
		at = NULL;
	if (!at) { // kept blocks are not to be the cause
		lazo_free_blocks(1);
		if (posix_memalign(&at, align, size)) return NULL;
	}
	pthread_mutex_lock(&blocks.mutex);
	use(malloc_usable_size(at));
	blocks.counts.made++;
	pthread_mutex_unlock(&blocks.mutex);
	return at;
}

// What the library calls in place of libc's.

static void *lazo_malloc(size_t size) { return size < LARGE ? malloc(size) : allocate(_Alignof(max_align_t), size); }

static void *lazo_aligned_alloc(size_t align, size_t size) {
	return size < LARGE ? aligned_alloc(align, size) : allocate(align, size);
}

static int lazo_posix_memalign(void **out, size_t align, size_t size) {
	if (size < LARGE) return posix_memalign(out, align, size);
	void *at = allocate(align, size);
	if (!at) return ENOMEM;
	*out = at;
	return 0;
}

static void *lazo_realloc(void *old, size_t size) {
	size_t before = old ? malloc_usable_size(old) : 0;
	void *at = realloc(old, size);
	if (!at && size) return NULL;
	size_t after = at ? malloc_usable_size(at) : 0;
	if (before < LARGE && after < LARGE) return at;
	pthread_mutex_lock(&blocks.mutex);
	if (before >= LARGE) unuse(before);
	if (after >= LARGE) use(after);
	pthread_mutex_unlock(&blocks.mutex);
	return at;
}

// lazo_free keeps a large block, if no more bytes are kept then than were in use at once, and frees those that nobody
// took for long.
static void lazo_free(void *at) {
	size_t size = at ? malloc_usable_size(at) : 0;
	if (size < LARGE) {
		free(at);
		return;
	}
	void *freed[SLOTS];
	int n = 0;
	pthread_mutex_lock(&blocks.mutex);
	unuse(size);
	struct block *room = NULL;
	for (struct block *b = blocks.kept; b < blocks.kept + SLOTS; b++) {
		if (b->at && size >= b->size / 2 && ++b->passed > PASSED) freed[n++] = take(b);
		if (!b->at) room = b;
	}
	if (room && blocks.counts.kept + size <= blocks.counts.most) {
		*room = (struct block){.at = at, .size = size};
		blocks.counts.kept += size;
		at = NULL;
		if (size >= HUGE) pthread_cond_signal(&blocks.freed);
	}
	pthread_mutex_unlock(&blocks.mutex);
	free(at);
	while (n) free(freed[--n]);
}

void lazo_free_blocks(int trim) {
	for (struct block *b = blocks.kept; b < blocks.kept + SLOTS; b++) {
		pthread_mutex_lock(&blocks.mutex);
		void *at = b->at ? take(b) : NULL;
		pthread_mutex_unlock(&blocks.mutex);
		free(at);
	}
	pthread_mutex_lock(&blocks.mutex);
	blocks.counts.most = blocks.counts.used;
	pthread_mutex_unlock(&blocks.mutex);
#ifdef __GLIBC__
	if (trim) malloc_trim(0);
#endif
}

lazo_block_counts lazo_count_blocks(void) {
	pthread_mutex_lock(&blocks.mutex);
	lazo_block_counts counts = blocks.counts;
	pthread_mutex_unlock(&blocks.mutex);
	return counts;
}

static const struct {
	const char *name;
	void *function;
} replaced[] = {
	{"free", lazo_free}, {"malloc", lazo_malloc}, {"aligned_alloc", lazo_aligned_alloc},
	{"posix_memalign", lazo_posix_memalign}, {"realloc", lazo_realloc},
};

enum { REPLACED = sizeof replaced / sizeof replaced[0] };

// Where in a library the loader wrote the addresses of functions.
struct search {
	const void *address; // in the library that is looked for
	int found;           // it is there
	int changed[REPLACED];
	int error;
};

// change writes over one address, which the loader may have made read-only.
static int change(void **place, void *function) {
	size_t page = sysconf(_SC_PAGESIZE);
	void *start = (void *)((uintptr_t)place & ~(page - 1));
	if (mprotect(start, page, PROT_READ | PROT_WRITE)) return errno;
	__atomic_store_n(place, function, __ATOMIC_RELEASE);
	return 0;
}

// protect makes read-only again what the loader had made so: the whole pages of what the library names.
static int protect(uintptr_t start, size_t size) {
	size_t page = sysconf(_SC_PAGESIZE);
	uintptr_t first = start & ~(page - 1), end = (start + size) & ~(page - 1);
	return end > first && mprotect((void *)first, end - first, PROT_READ) ? errno : 0;
}

static void change_all(struct search *s, ElfW(Addr) base, const ElfW(Rela) *list, size_t bytes, const ElfW(Sym) *symbols,
	const char *names) {
	for (const ElfW(Rela) *r = list; (const char *)r < (const char *)list + bytes; r++) {
		switch (ELF64_R_TYPE(r->r_info)) {
#ifdef __x86_64__
		case R_X86_64_JUMP_SLOT: case R_X86_64_GLOB_DAT: break;
#else
		case R_AARCH64_JUMP_SLOT: case R_AARCH64_GLOB_DAT: break;
#endif
		default: continue;
		}
		const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(r->r_info)];
		if (symbol->st_shndx != SHN_UNDEF) continue; // its own function of that name
		for (size_t i = 0; i < REPLACED; i++) {
			if (strcmp(names + symbol->st_name, replaced[i].name)) continue;
			int error = change((void **)(base + r->r_offset), replaced[i].function);
			if (error)
				s->error = error;
			else
				s->changed[i]++;
		}
	}
}

static int search_library(struct dl_phdr_info *library, size_t size, void *search) {
	struct search *s = search;
	(void)size;
	const ElfW(Dyn) *dynamic = NULL;
	const ElfW(Phdr) *read_only = NULL;
	for (int i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &library->dlpi_phdr[i];
		uintptr_t start = library->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_LOAD && (uintptr_t)s->address >= start && (uintptr_t)s->address - start < p->p_memsz)
			s->found = 1;
		if (p->p_type == PT_DYNAMIC) dynamic = (void *)start;
		if (p->p_type == PT_GNU_RELRO) read_only = p;
	}
	if (!s->found) return 0;
	const ElfW(Sym) *symbols = NULL;
	const char *names = NULL;
	const ElfW(Rela) *lists[2] = {0};
	size_t bytes[2] = {0};
	for (const ElfW(Dyn) *d = dynamic; d && d->d_tag != DT_NULL; d++) {
		// Some loaders write addresses into this table, others leave what the file has.
		void *at = (void *)(d->d_un.d_ptr < library->dlpi_addr ? library->dlpi_addr + d->d_un.d_ptr : d->d_un.d_ptr);
		switch (d->d_tag) {
		case DT_SYMTAB: symbols = at; break;
		case DT_STRTAB: names = at; break;
		case DT_RELA: lists[0] = at; break;
		case DT_RELASZ: bytes[0] = d->d_un.d_val; break;
		case DT_JMPREL: lists[1] = at; break;
		case DT_PLTRELSZ: bytes[1] = d->d_un.d_val; break;
		}
	}
	if (symbols && names)
		for (int i = 0; i < 2; i++)
			if (lists[i]) change_all(s, library->dlpi_addr, lists[i], bytes[i], symbols, names);
	if (read_only && s->error == 0) s->error = protect(library->dlpi_addr + read_only->p_vaddr, read_only->p_memsz);
	return 1;
}

static void init(void) {
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); // the other one may be set back
	pthread_cond_init(&blocks.freed, &attributes);
	pthread_condattr_destroy(&attributes);
}

int lazo_keep_blocks(const void *address) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, init);
	struct search s = {.address = address};
	dl_iterate_phdr(search_library, &s);
	if (s.error) return -s.error;
	int sum = 0;
	for (size_t i = 0; i < REPLACED; i++) sum += s.changed[i];
	return s.changed[0] && sum > s.changed[0] ? sum : -ENOENT;
}

#else

int lazo_keep_blocks(const void *address) {
	(void)address;
	return -ENOSYS;
}

void lazo_free_blocks(int trim) { (void)trim; }

lazo_block_counts lazo_count_blocks(void) { return (lazo_block_counts){0}; }

#endif
