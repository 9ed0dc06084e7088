package xla

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

// GoMLX packs elements of less than a byte, the first lowest; PJRT's host form has a byte for each.

func packedBits(s pjrt.Shape) int {
	switch s.DType {
	case pjrt.Int4, pjrt.Uint4:
		return 4
	case pjrt.Int2, pjrt.Uint2:
		return 2
	}
	return 0
}

func packedOf(flat any, s pjrt.Shape, bits int) ([]byte, error) {
	packed, ok := flat.([]byte)
	if !ok {
		return nil, fmt.Errorf("xla: data of type %T for an array %v: expected a []uint8, with %d elements in each byte", flat, s, 8/bits)
	}
	if want := dtypes.DType(s.DType).SizeForDimensions(s.Dims...); len(packed) != want {
		return nil, fmt.Errorf("xla: %d bytes for an array %v: expected %d, with %d elements in each", len(packed), s, want, 8/bits)
	}
	return packed, nil
}

func unpack(apart, packed []byte, bits int) {
	each, mask := 8/bits, byte(1<<bits-1)
	for i := range apart {
		apart[i] = packed[i/each] >> (i % each * bits) & mask
	}
}

func pack(packed, apart []byte, bits int) {
	each, mask := 8/bits, byte(1<<bits-1)
	clear(packed)
	for i, b := range apart {
		packed[i/each] |= b & mask << (i % each * bits)
	}
}
