#include "library.h"

#include <dlfcn.h>
#include <string.h>
#ifdef __linux__
#include <link.h>
#endif

// Open MPI's handles are addresses of variables that it exports.
static const char *open_mpi(lazo_mpi *mpi, void *library) {
	const struct { const char *name; lazo_handle *to; } handles[] = {
		{"ompi_mpi_comm_world", &mpi->world}, {"ompi_mpi_errors_return", &mpi->errors_return},
		{"ompi_mpi_info_null", &mpi->no_info}, {"ompi_mpi_byte", &mpi->byte},
		{"ompi_mpi_int8_t", &mpi->i8}, {"ompi_mpi_int16_t", &mpi->i16}, {"ompi_mpi_int32_t", &mpi->i32},
		{"ompi_mpi_int64_t", &mpi->i64}, {"ompi_mpi_uint8_t", &mpi->u8}, {"ompi_mpi_uint16_t", &mpi->u16},
		{"ompi_mpi_uint32_t", &mpi->u32}, {"ompi_mpi_uint64_t", &mpi->u64},
		{"ompi_mpi_float", &mpi->f32}, {"ompi_mpi_double", &mpi->f64},
		{"ompi_mpi_op_sum", &mpi->op[LAZO_SUM]}, {"ompi_mpi_op_prod", &mpi->op[LAZO_PRODUCT]},
		{"ompi_mpi_op_min", &mpi->op[LAZO_MIN]}, {"ompi_mpi_op_max", &mpi->op[LAZO_MAX]},
		{"ompi_mpi_op_band", &mpi->op[LAZO_AND]}, {"ompi_mpi_op_bor", &mpi->op[LAZO_OR]},
	};
	for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++) {
		*handles[i].to = (lazo_handle)dlsym(library, handles[i].name);
		if (!*handles[i].to) return handles[i].name;
	}
	mpi->in_place = (void *)1;
	mpi->no_status = NULL;
	mpi->thread_multiple = 3;
	mpi->type_shared = 0;
	return NULL;
}

// The values of MPICH's mpi.h, which are those of its ABI initiative: Intel MPI and MVAPICH have the same.
static void mpich(lazo_mpi *mpi) {
	mpi->world = 0x44000000, mpi->errors_return = 0x54000001, mpi->no_info = 0x1c000000, mpi->byte = 0x4c00010d;
	mpi->i8 = 0x4c000137, mpi->i16 = 0x4c000238, mpi->i32 = 0x4c000439, mpi->i64 = 0x4c00083a;
	mpi->u8 = 0x4c00013b, mpi->u16 = 0x4c00023c, mpi->u32 = 0x4c00043d, mpi->u64 = 0x4c00083e;
	mpi->f32 = 0x4c00040a, mpi->f64 = 0x4c00080b;
	mpi->op[LAZO_MAX] = 0x58000001, mpi->op[LAZO_MIN] = 0x58000002, mpi->op[LAZO_SUM] = 0x58000003;
	mpi->op[LAZO_PRODUCT] = 0x58000004, mpi->op[LAZO_AND] = 0x58000006, mpi->op[LAZO_OR] = 0x58000008;
	mpi->in_place = (void *)-1;
	mpi->no_status = (void *)1;
	mpi->thread_multiple = 3;
	mpi->type_shared = 1;
}

// The values of the standard's own binary interface, MPI 5.0, appendix A.
static void standard(lazo_mpi *mpi) {
	mpi->world = 0x101, mpi->errors_return = 0x143, mpi->no_info = 0x130, mpi->byte = 0x247;
	mpi->i8 = 0x240, mpi->i16 = 0x248, mpi->i32 = 0x250, mpi->i64 = 0x258;
	mpi->u8 = 0x241, mpi->u16 = 0x249, mpi->u32 = 0x251, mpi->u64 = 0x259;
	mpi->f32 = 0x210, mpi->f64 = 0x214;
	mpi->op[LAZO_SUM] = 0x21, mpi->op[LAZO_MIN] = 0x22, mpi->op[LAZO_MAX] = 0x23, mpi->op[LAZO_PRODUCT] = 0x24;
	mpi->op[LAZO_AND] = 0x28, mpi->op[LAZO_OR] = 0x29;
	mpi->in_place = (void *)1;
	mpi->no_status = NULL;
	mpi->thread_multiple = 4096;
	mpi->type_shared = 221;
}

const char *lazo_resolve(lazo_mpi *mpi, void *library, int flavour) {
	memset(mpi, 0, sizeof *mpi);
	mpi->library = library;
	mpi->flavour = flavour;
#define LAZO_FIND(name, params) \
	if (!(mpi->name = (int (*) params)dlsym(library, "MPI_" #name))) return "MPI_" #name;
	LAZO_MPI_FUNCTIONS(LAZO_FIND)
#undef LAZO_FIND
	switch (flavour) {
	case LAZO_OPEN_MPI: return open_mpi(mpi, library);
	case LAZO_MPICH: mpich(mpi); return NULL;
	default: standard(mpi); return NULL;
	}
}

void lazo_run_exit(const lazo_mpi *mpi) {
#ifdef __linux__
	// The compiler's own destructor is among these: it runs what the library gave to atexit, once.
	struct link_map *map = NULL;
	if (dlinfo(mpi->library, RTLD_DI_LINKMAP, &map)) return;
	size_t count = 0;
	void (**functions)(void) = NULL;
	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_FINI_ARRAY) functions = (void (**)(void))(map->l_addr + entry->d_un.d_ptr);
		if (entry->d_tag == DT_FINI_ARRAYSZ) count = entry->d_un.d_val / sizeof *functions;
	}
	while (functions && count) functions[--count]();
#else
	(void)mpi;
#endif
}
