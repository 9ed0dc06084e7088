package pretrained

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// piece bounds the bytes that are converted at once.
const piece = 1 << 20

// writeTo writes the elements in another dtype and in the form of a row's variable. Only a transposed tensor is in
// memory as a whole.
func (s stored) writeTo(w io.Writer, as safetensors.DType, of tensor) error {
	if of.count {
		return s.writeCount(w, as, of.reshaped[0])
	}
	if len(s.Dims) == 0 {
		data, err := s.read(0, 1, as)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
	rows := s.Dims[0]
	row := s.DType.Bits() / 8
	for _, n := range s.Dims[1:] {
		row *= n
	}
	if of.transposed {
		data, err := s.read(0, rows, as)
		if err != nil {
			return err
		}
		width := as.Bits() / 8
		return writeColumns(w, swapped(data, rows, s.Dims[1], of.places(), width), rows, s.Dims[1]*of.places(), width)
	}
	at := max(1, piece/max(1, row))
	for from := 0; from < rows; from += at {
		data, err := s.read(from, min(from+at, rows), as)
		if err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

func (s stored) writeCount(w io.Writer, as safetensors.DType, n int) error {
	data, err := s.rows(0, 1)
	if err == nil && int64(binary.LittleEndian.Uint64(data)) < 0 {
		err = fmt.Errorf("tensor %q: %d batches, expected at least 0", s.Name, int64(binary.LittleEndian.Uint64(data)))
	}
	if err != nil {
		return err
	}
	one := make([]byte, as.Bits()/8)
	numbers[as].write(one, float32(min(binary.LittleEndian.Uint64(data), mostCount)))
	_, err = w.Write(bytes.Repeat(one, n))
	return err
}

// mostCount is within the range of float16.
const mostCount = 1 << 15

func count(data []byte, as safetensors.DType) []byte {
	return binary.LittleEndian.AppendUint64(nil, uint64(numbers[as].read(data)))
}

func (s stored) read(from, to int, as safetensors.DType) ([]byte, error) {
	data, err := s.rows(from, to)
	if err == nil {
		data, err = converted(data, s.DType, as)
	}
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", s.Name, err)
	}
	return data, nil
}

func swapped(data []byte, outer, a, b, width int) []byte {
	if a == 1 || b == 1 {
		return data
	}
	out := make([]byte, 0, len(data))
	for i := range outer {
		for k := range b {
			for j := range a {
				out = append(out, data[((i*a+j)*b+k)*width:][:width]...)
			}
		}
	}
	return out
}

func writeColumns(w io.Writer, data []byte, rows, columns, width int) error {
	at := max(1, piece/max(1, rows*width))
	part := make([]byte, 0, min(at, columns)*rows*width)
	for from := 0; from < columns; from += at {
		to := min(from+at, columns)
		part = part[:(to-from)*rows*width]
		for row := range rows {
			for column := from; column < to; column++ {
				copy(part[((column-from)*rows+row)*width:][:width], data[(row*columns+column)*width:][:width])
			}
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// converted rounds to nearest. A finite number that the dtype lacks is an error.
func converted(data []byte, from, to safetensors.DType) ([]byte, error) {
	if from == to {
		return data, nil
	}
	read, write, written := numbers[from].read, numbers[to].write, numbers[to].read
	wide, width := from.Bits()/8, to.Bits()/8
	out := make([]byte, len(data)/wide*width)
	for i := range len(data) / wide {
		x := read(data[i*wide:])
		write(out[i*width:], x)
		if y := written(out[i*width:]); math.IsInf(float64(y), 0) && !math.IsInf(float64(x), 0) {
			return nil, fmt.Errorf("the number %g is above the range of %s", x, to)
		}
	}
	return out, nil
}

var numbers = map[safetensors.DType]struct {
	read  func([]byte) float32
	write func([]byte, float32)
}{
	safetensors.F32: {
		func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) },
		func(b []byte, x float32) { binary.LittleEndian.PutUint32(b, math.Float32bits(x)) },
	},
	safetensors.F16: {
		func(b []byte) float32 { return float16.FromBits(binary.LittleEndian.Uint16(b)).Float32() },
		func(b []byte, x float32) { binary.LittleEndian.PutUint16(b, toHalf(x)) },
	},
	safetensors.BF16: {
		func(b []byte) float32 { return bfloat16.FromBits(binary.LittleEndian.Uint16(b)).Float32() },
		func(b []byte, x float32) { binary.LittleEndian.PutUint16(b, bfloat16.FromFloat32(x).Bits()) },
	},
}

// toHalf rounds to nearest, halves to even. float16 makes 0 of numbers below the smallest normal one.
func toHalf(x float32) uint16 {
	if small := math.Abs(float64(x)); small < 0x1p-14 {
		return uint16(math.Float32bits(x)>>16&0x8000) | uint16(math.RoundToEven(small*0x1p24))
	}
	return float16.FromFloat32(x).Bits()
}
