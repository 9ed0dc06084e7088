package pretrained

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes/float16"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// blocks are the types of GGUF's tensors: the numbers and bytes of a block, and its reader. Those without numbers are
// dtypes of safetensors. As in Python's gguf, products are rounded to float32 before sums: float32(x) forbids fusing.
var blocks = map[uint64]struct {
	name            string
	elements, bytes int
	dtype           safetensors.DType
	numbers         func(b []byte, x []float32)
}{
	0:  {"F32", 1, 4, safetensors.F32, nil},
	1:  {"F16", 1, 2, safetensors.F16, nil},
	30: {"BF16", 1, 2, safetensors.BF16, nil},
	2: {"Q4_0", 32, 18, safetensors.F32, func(b []byte, x []float32) {
		d := half(b)
		nibbles(b[2:], x, func(q byte, _ int) float32 { return d * float32(int(q)-8) })
	}},
	3: {"Q4_1", 32, 20, safetensors.F32, func(b []byte, x []float32) {
		d, m := half(b), half(b[2:])
		nibbles(b[4:], x, func(q byte, _ int) float32 { return float32(d*float32(q)) + m })
	}},
	6: {"Q5_0", 32, 22, safetensors.F32, func(b []byte, x []float32) {
		d, high := half(b), binary.LittleEndian.Uint32(b[2:])
		nibbles(b[6:], x, func(q byte, i int) float32 { return d * float32(int(q)+int(high>>i&1)*16-16) })
	}},
	7: {"Q5_1", 32, 24, safetensors.F32, func(b []byte, x []float32) {
		d, m, high := half(b), half(b[2:]), binary.LittleEndian.Uint32(b[4:])
		nibbles(b[8:], x, func(q byte, i int) float32 { return float32(d*float32(int(q)+int(high>>i&1)*16)) + m })
	}},
	8: {"Q8_0", 32, 34, safetensors.F32, func(b []byte, x []float32) {
		d := half(b)
		for i := range x {
			x[i] = float32(int8(b[2+i])) * d
		}
	}},
	10: {"Q2_K", 256, 84, safetensors.F32, func(b []byte, x []float32) {
		d, least := half(b[80:]), half(b[82:])
		for i := range x {
			scale := b[i/16]
			q := b[16+i/128*32+i%32] >> (i / 32 % 4 * 2) & 3
			x[i] = float32(float32(d*float32(scale&15))*float32(q)) - float32(least*float32(scale>>4))
		}
	}},
	11: {"Q3_K", 256, 110, safetensors.F32, func(b []byte, x []float32) {
		d := half(b[108:])
		for i := range x {
			at := i / 16
			scale := b[96+at%8]>>(at/8*4)&15 | b[104+at%4]>>(at/4*2)&3<<4
			q := int(b[32+i/128*32+i%32]>>(i/32%4*2)&3) - int(^b[i%32]>>(i/32)&1)*4
			x[i] = float32(d*float32(int(scale)-32)) * float32(q)
		}
	}},
	12: {"Q4_K", 256, 144, safetensors.F32, func(b []byte, x []float32) {
		d, least := half(b), half(b[2:])
		for i := range x {
			scale, offset := scaleK(b[4:], i/32)
			q := b[16+i/64*32+i%32] >> (i / 32 % 2 * 4) & 15
			x[i] = float32(float32(d*scale)*float32(q)) - float32(least*offset)
		}
	}},
	13: {"Q5_K", 256, 176, safetensors.F32, func(b []byte, x []float32) {
		d, least := half(b), half(b[2:])
		for i := range x {
			scale, offset := scaleK(b[4:], i/32)
			q := b[48+i/64*32+i%32]>>(i/32%2*4)&15 | b[16+i%32]>>(i/32)&1<<4
			x[i] = float32(float32(d*scale)*float32(q)) - float32(least*offset)
		}
	}},
	14: {"Q6_K", 256, 210, safetensors.F32, func(b []byte, x []float32) {
		d := half(b[208:])
		for i := range x {
			q := b[i/128*64+i%64]>>(i/64%2*4)&15 | b[128+i/128*32+i%32]>>(i/32%4*2)&3<<4
			x[i] = float32(d*float32(int8(b[192+i/16]))) * float32(int(q)-32)
		}
	}},
}

func half(b []byte) float32 { return float16.FromBits(binary.LittleEndian.Uint16(b)).Float32() }

func nibbles(b []byte, x []float32, number func(q byte, i int) float32) {
	for i := range 16 {
		x[i], x[16+i] = number(b[i]&15, i), number(b[i]>>4, 16+i)
	}
}

// scaleK is the scale and offset of a part of a block, 6 bits each in 12 bytes.
func scaleK(b []byte, part int) (scale, offset float32) {
	if part < 4 {
		return float32(b[part] & 63), float32(b[4+part] & 63)
	}
	part -= 4
	return float32(b[8+part]&15 | b[part]>>6<<4), float32(b[8+part]>>4 | b[4+part]>>6<<4)
}

// q8 writes 32 numbers as a block of Q8_0; halves are rounded away from zero, as in Python's gguf.
func q8(x []float32, b []byte) error {
	most := float32(0)
	for _, v := range x {
		if most = max(most, float32(math.Abs(float64(v)))); most != most || most > math.MaxFloat32 {
			return fmt.Errorf("the number %g, expected a finite one", v)
		}
	}
	d := most / 127
	if binary.LittleEndian.PutUint16(b, toHalf(d)); math.IsInf(float64(half(b)), 0) {
		return fmt.Errorf("the number %g is above the range of Q8_0, %g", most, 65504*127.0)
	}
	inverse := float32(0)
	if d != 0 {
		inverse = 1 / d
	}
	for i, v := range x {
		y := float64(float32(v * inverse))
		if b[2+i] = byte(int8(math.Round(y))); math.Abs(y) > 128 { // an infinite inverse: numbers are 0
			b[2+i] = 0
		}
	}
	return nil
}
