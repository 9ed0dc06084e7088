package safetensors

import (
	"fmt"
	"math"
	"strings"

	"github.com/lazo-ml/lazo/internal/listed"
)

// DType is a tensor's dtype; 0 is invalid. The order is upstream's, by width.
type DType uint8

// The dtypes of safetensors 0.8.0 that Go code computes with. [ParseDType] returns the others: "F4", "F6_E2M3",
// "F6_E3M2", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ" and "F8_E5M2FNUZ". Elements of F4 and F6 are packed without
// gaps, into whole bytes per tensor.
const (
	Bool   DType = iota + 1 // one byte, 0 or 1
	f4                      // OCP E2M1; the lower half of a byte comes first
	f6e2m3                  // OCP
	f6e3m2                  // OCP
	U8
	I8         // two's complement, like all signed integers
	f8e5m2     // OCP, with infinities
	f8e4m3     // OCP, without infinities: e4m3fn in XLA and ml_dtypes
	f8e8m0     // OCP, powers of two
	f8e4m3fnuz // without infinities and -0, one NaN
	f8e5m2fnuz // without infinities and -0, one NaN
	I16
	U16
	F16
	BF16 // upper half of an F32
	I32
	U32
	F32
	C64 // two F32: real and imaginary part
	F64
	I64
	U64
)

var dtypes = [...]struct {
	name string
	bits int64
}{
	Bool: {"BOOL", 8}, f4: {"F4", 4}, f6e2m3: {"F6_E2M3", 6}, f6e3m2: {"F6_E3M2", 6},
	U8: {"U8", 8}, I8: {"I8", 8}, f8e5m2: {"F8_E5M2", 8}, f8e4m3: {"F8_E4M3", 8}, f8e8m0: {"F8_E8M0", 8},
	f8e4m3fnuz: {"F8_E4M3FNUZ", 8}, f8e5m2fnuz: {"F8_E5M2FNUZ", 8},
	I16: {"I16", 16}, U16: {"U16", 16}, F16: {"F16", 16}, BF16: {"BF16", 16},
	I32: {"I32", 32}, U32: {"U32", 32}, F32: {"F32", 32},
	C64: {"C64", 64}, F64: {"F64", 64}, I64: {"I64", 64}, U64: {"U64", 64},
}

// ParseDType returns the dtype of a name in files: "F32", "BF16", "F8_E4M3".
func ParseDType(name string) (DType, error) {
	if d := dtypeNamed(name); d != 0 {
		return d, nil
	}
	return 0, fmt.Errorf("safetensors: %w", unknownDType(name))
}

func dtypeNamed(name string) DType {
	for d, row := range dtypes {
		if row.name == name {
			return DType(d)
		}
	}
	return 0
}

func unknownDType(name string) error {
	names := make([]string, 0, len(dtypes)-1)
	for _, row := range dtypes[1:] {
		names = append(names, row.name)
	}
	return fmt.Errorf("unknown dtype %s, expected one of %s", listed.Quoted(name), strings.Join(names, ", "))
}

func (d DType) valid() bool { return d > 0 && int(d) < len(dtypes) }

// String returns the name in files.
func (d DType) String() string {
	if !d.valid() {
		return fmt.Sprintf("DType(%d)", uint8(d))
	}
	return dtypes[d].name
}

// Bits returns an element's width in bits, 0 if d is invalid.
func (d DType) Bits() int {
	if !d.valid() {
		return 0
	}
	return int(dtypes[d].bits)
}

// MarshalText returns the name, for JSON.
func (d DType) MarshalText() ([]byte, error) {
	if !d.valid() {
		return nil, fmt.Errorf("safetensors: %v is not a dtype of the format", d)
	}
	return []byte(d.String()), nil
}

// UnmarshalText is [ParseDType].
func (d *DType) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDType(string(text))
	return err
}

// byteSize returns a tensor's bytes. An axis of 0 does not hide an overflow of the others: readers agree in any order
// of multiplication.
func byteSize(d DType, dims []int) (int64, error) {
	bits, empty := dtypes[d].bits, false
	for i, dim := range dims {
		switch {
		case dim < 0:
			return 0, fmt.Errorf("axis %d of %v has the length %d, expected at least 0", i, dims, dim)
		case dim == 0:
			empty = true
		case int64(dim) > math.MaxInt64/bits:
			return 0, fmt.Errorf("the size of dims %v of %v overflows an integer: %w", dims, d, ErrLimit)
		default:
			bits *= int64(dim)
		}
	}
	if empty {
		return 0, nil
	}
	if bits%8 != 0 {
		return 0, fmt.Errorf("dims %v of %v take %d bits, expected whole bytes", dims, d, bits)
	}
	return bits / 8, nil
}
