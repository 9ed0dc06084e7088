#include "operations.h"

#include <complex.h>
#include <math.h>
#include <string.h>
#include "ffi.h"

// Every rank must come to the same bits, in whatever order it meets the operands. So the minimum and maximum of a NaN
// and anything is one certain NaN, and 0 is larger than -0: MPI leaves both open.
#define NUMBERS(name, type, nan) \
	static inline type name##_min(type a, type b) { \
		if (a != a || b != b) return nan; \
		return a < b || (a == b && signbit(a)) ? a : b; \
	} \
	static inline type name##_max(type a, type b) { \
		if (a != a || b != b) return nan; \
		return a > b || (a == b && !signbit(a)) ? a : b; \
	} \
	static inline type name##_sum(type a, type b) { return a + b; } \
	static inline type name##_product(type a, type b) { return a * b; }
NUMBERS(f32, float, NAN)
NUMBERS(f64, double, (double)NAN)
#undef NUMBERS

static inline float of_bits(uint32_t bits) {
	float value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

static inline uint32_t to_bits(float value) {
	uint32_t bits;
	memcpy(&bits, &value, sizeof bits);
	return bits;
}

static inline float of_bf16(uint16_t bits) { return of_bits((uint32_t)bits << 16); }

// Rounded to nearest, ties to even; a NaN stays one.
static inline uint16_t to_bf16(float value) {
	uint32_t bits = to_bits(value);
	if (value != value) return 0x7fc0;
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float of_f16(uint16_t bits) {
	uint32_t sign = (uint32_t)(bits & 0x8000) << 16, rest = bits & 0x7fff;
	if (rest >= 0x7c00) return of_bits(sign | 0x7f800000 | (rest & 0x3ff) << 13);
	if (rest < 0x400) return of_bits(sign | to_bits((float)rest * 0x1p-24f)); // subnormal here, and not with 32 bits
	return of_bits(sign | ((rest << 13) + (112 << 23)));
}

static inline uint16_t to_f16(float value) {
	uint32_t bits = to_bits(value), sign = bits >> 16 & 0x8000;
	float size = fabsf(value);
	if (value != value) return 0x7e00;
	if (size >= 65520.0f) return (uint16_t)(sign | 0x7c00);
	if (size < 0x1p-14f) // subnormal: the sum rounds to multiples of 2^-24, and its last bits are the number of them
		return (uint16_t)(sign | (to_bits(size + 0.5f) - to_bits(0.5f)));
	bits &= 0x7fffffff;
	bits += 0xfff + (bits >> 13 & 1);
	return (uint16_t)(sign | ((bits >> 13) - (112 << 10)));
}

#define OPERATION(name, type, result) \
	static void name(void *in, void *inout, int *length, void *unused) { \
		(void)unused; \
		const type *a = in; \
		type *b = inout; \
		for (int i = 0; i < *length; i++) b[i] = result; \
	}

OPERATION(f32_minimum, float, f32_min(a[i], b[i]))
OPERATION(f32_maximum, float, f32_max(a[i], b[i]))
OPERATION(f64_minimum, double, f64_min(a[i], b[i]))
OPERATION(f64_maximum, double, f64_max(a[i], b[i]))

#define HALF(name, op) \
	OPERATION(f16_##name, uint16_t, to_f16(f32_##op(of_f16(a[i]), of_f16(b[i])))) \
	OPERATION(bf16_##name, uint16_t, to_bf16(f32_##op(of_bf16(a[i]), of_bf16(b[i]))))
HALF(plus, sum)
HALF(times, product)
HALF(minimum, min)
HALF(maximum, max)

// The product as it is written down, without C's repair of infinities, which costs a call for each.
#define COMPLEX(name, type) \
	static void name(void *in, void *inout, int *length, void *unused) { \
		(void)unused; \
		const type *a = in; \
		type *b = inout; \
		for (int i = 0; i < 2 * *length; i += 2) { \
			type real = a[i] * b[i] - a[i + 1] * b[i + 1]; \
			b[i + 1] = a[i] * b[i + 1] + a[i + 1] * b[i]; \
			b[i] = real; \
		} \
	}
COMPLEX(c64_times, float)
COMPLEX(c128_times, double)

lazo_operation *lazo_own(int dtype, int op) {
	switch (dtype) {
	case FFI_F32: return op == LAZO_MIN ? f32_minimum : op == LAZO_MAX ? f32_maximum : NULL;
	case FFI_F64: return op == LAZO_MIN ? f64_minimum : op == LAZO_MAX ? f64_maximum : NULL;
	case FFI_C64: return op == LAZO_PRODUCT ? c64_times : NULL;
	case FFI_C128: return op == LAZO_PRODUCT ? c128_times : NULL;
	}
	lazo_operation *const f16[] = {f16_plus, f16_times, f16_minimum, f16_maximum, NULL, NULL};
	lazo_operation *const bf16[] = {bf16_plus, bf16_times, bf16_minimum, bf16_maximum, NULL, NULL};
	return dtype == FFI_F16 ? f16[op] : dtype == FFI_BF16 ? bf16[op] : NULL;
}
