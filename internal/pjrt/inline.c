#define _GNU_SOURCE
#include "inline.h"

#if defined(__linux__) && defined(__x86_64__)

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

// cpu106: the whole of xla::ThisThreadIsInsideHostCallback, with its distances to what it uses, and its own from execute.
enum { FROM_EXECUTE = 0x250ae00 - 0x245bad0, AFTER_LEA = 11, TO_INDEX = 0x81c5635, OFFSET = 0x70 };
static const unsigned char function[] = {
	0x55, 0x48, 0x89, 0xe5,                   // push %rbp; mov %rsp, %rbp
	0x48, 0x8d, 0x3d, 0x35, 0x56, 0x1c, 0x08, // lea TO_INDEX(%rip), %rdi
	0xe8, 0xb0, 0x37, 0xf2, 0x07,             // call __tls_get_addr
	0x83, 0xb8, 0x70, 0x00, 0x00, 0x00, 0x00, // cmpl $0, OFFSET(%rax)
	0x0f, 0x9f, 0xc0, 0x5d, 0xc3,             // setg %al; pop %rbp; ret
};

struct search {
	uintptr_t execute;
	lazo_mark mark;
};

static int search_code(struct dl_phdr_info *library, size_t size, void *search) {
	struct search *s = search;
	(void)size;
	for (int i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &library->dlpi_phdr[i];
		uintptr_t start = library->dlpi_addr + p->p_vaddr, at = s->execute + FROM_EXECUTE;
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || s->execute < start || s->execute - start >= p->p_memsz) continue;
		if (at - start + sizeof function <= p->p_memsz && !memcmp((const void *)at, function, sizeof function))
			s->mark.index = (void *)(at + AFTER_LEA + TO_INDEX);
		return 1;
	}
	return 0;
}

lazo_mark lazo_find_mark(const void *execute) {
	struct search s = {.execute = (uintptr_t)execute, .mark.offset = OFFSET};
	*(void **)&s.mark.place = dlsym(RTLD_DEFAULT, "__tls_get_addr"); // static programs cannot link it
	if (s.mark.place) dl_iterate_phdr(search_code, &s);
	return s.mark;
}

void lazo_change_mark(lazo_mark mark, int by) {
	if (mark.index) *(int *)((char *)mark.place(mark.index) + mark.offset) += by;
}

#else

lazo_mark lazo_find_mark(const void *execute) {
	(void)execute;
	return (lazo_mark){0};
}

void lazo_change_mark(lazo_mark mark, int by) { (void)mark, (void)by; }

#endif
