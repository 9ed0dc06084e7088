package safetensors_test

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

type half uint16 // as bfloat16 and float16 types are made

// checkValues: on this machine and on one of the other byte order, aligned or not, values are those of encoding/binary.
func checkValues[T safetensors.Element](t *testing.T, order binary.ByteOrder, element *rapid.Generator[T]) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(element, 1, 9).Draw(t, "values")
		want, err := binary.Append(nil, order, values)
		require.NoError(t, err)
		data := safetensors.Bytes(values)
		require.Equal(t, want, data)
		for shift := range 8 {
			moved := append(make([]byte, shift), data...)[shift:]
			got, err := safetensors.Values[T](moved)
			require.NoError(t, err)
			require.Equal(t, want, safetensors.Bytes(got), "bits, because NaN differs from itself")
			require.Zero(t, uintptr(unsafe.Pointer(&got[0]))%unsafe.Alignof(got[0]))
		}
		if unsafe.Sizeof(values[0]) > 1 {
			_, err = safetensors.Values[T](data[1:])
			require.ErrorContains(t, err, "are not a whole number of")
		}
	})
	none, err := safetensors.Values[T](nil)
	require.NoError(t, err)
	require.Empty(t, none)
	require.NotNil(t, none)
	require.Equal(t, []byte{}, safetensors.Bytes[T](nil))
}

func checkAllValues(t *testing.T, order binary.ByteOrder) {
	t.Run("bool", func(t *testing.T) { checkValues(t, order, rapid.Bool()) })
	t.Run("uint8", func(t *testing.T) { checkValues(t, order, rapid.Uint8()) })
	t.Run("int8", func(t *testing.T) { checkValues(t, order, rapid.Int8()) })
	t.Run("half", func(t *testing.T) {
		checkValues(t, order, rapid.Map(rapid.Uint16(), func(u uint16) half { return half(u) }))
	})
	t.Run("int16", func(t *testing.T) { checkValues(t, order, rapid.Int16()) })
	t.Run("uint32", func(t *testing.T) { checkValues(t, order, rapid.Uint32()) })
	t.Run("int32", func(t *testing.T) { checkValues(t, order, rapid.Int32()) })
	t.Run("float32", func(t *testing.T) { checkValues(t, order, rapid.Map(rapid.Uint32(), math.Float32frombits)) })
	t.Run("float64", func(t *testing.T) { checkValues(t, order, rapid.Map(rapid.Uint64(), math.Float64frombits)) })
	t.Run("int64", func(t *testing.T) { checkValues(t, order, rapid.Int64()) })
	t.Run("uint64", func(t *testing.T) { checkValues(t, order, rapid.Uint64()) })
	t.Run("complex64", func(t *testing.T) {
		checkValues(t, order, rapid.Custom(func(t *rapid.T) complex64 {
			return complex(rapid.Float32().Draw(t, "real"), rapid.Float32().Draw(t, "imaginary"))
		}))
	})
}

func TestValues(t *testing.T) { checkAllValues(t, binary.LittleEndian) }

// The code for machines of the other byte order, run on this one: it turns every element around, so that the result is
// what encoding/binary calls big endian.
func TestValuesOfTheOtherByteOrder(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("this machine is big endian: TestValues has run that code")
	}
	defer safetensors.SetByteOrder(false)()
	checkAllValues(t, binary.BigEndian)
}

func TestValuesShareMemory(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("not on a big-endian machine")
	}
	values := []float32{1, 2}
	data := safetensors.Bytes(values)
	require.Equal(t, len(data), cap(data), "an append goes elsewhere")
	again, err := safetensors.Values[float32](data)
	require.NoError(t, err)
	again[1] = 3
	require.Equal(t, []float32{1, 3}, values)
	require.Zero(t, testing.AllocsPerRun(10, func() { again, _ = safetensors.Values[float32](safetensors.Bytes(values)) }))

	file := write(t, []content{{safetensors.Tensor{Name: "w", DType: safetensors.F64, Dims: []int{1}}, safetensors.Bytes([]float64{math.Pi})}}, nil)
	r, err := open(file)
	require.NoError(t, err)
	read, _, err := r.Read("w")
	require.NoError(t, err)
	pi, err := safetensors.Values[float64](read)
	require.NoError(t, err)
	require.Same(t, (*float64)(unsafe.Pointer(&read[0])), &pi[0], "what Read gives is aligned")
}

func TestBoolsAreZeroOrOne(t *testing.T) {
	for b := range 256 {
		got, err := safetensors.Values[bool]([]byte{1, byte(b), 0})
		if b <= 1 {
			require.NoError(t, err)
			require.Equal(t, []bool{true, b == 1, false}, got)
			continue
		}
		require.ErrorContains(t, err, "safetensors: byte 1 of 3 is 0x")
	}
	require.True(t, slices.Equal([]byte{1, 0}, safetensors.Bytes([]bool{true, false})))
}
