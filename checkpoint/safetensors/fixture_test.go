package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// content is a tensor with its bytes.
type content struct {
	safetensors.Tensor
	data []byte
}

// write returns a file with tensors in the given order.
func write(t require.TestingT, tensors []content, metadata map[string]string) []byte {
	var out bytes.Buffer
	var list []safetensors.Tensor
	for _, c := range tensors {
		list = append(list, c.Tensor)
	}
	w, err := safetensors.NewWriter(&out, list, metadata)
	require.NoError(t, err)
	for _, c := range tensors {
		_, err := w.Write(c.Name, c.data)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func open(file []byte) (*safetensors.Reader, error) {
	return safetensors.NewReader(bytes.NewReader(file), int64(len(file)), safetensors.Limits{})
}

// read returns the whole content of a file.
func read(file []byte) ([]content, map[string]string, error) {
	r, err := open(file)
	if err != nil {
		return nil, nil, err
	}
	var all []content
	for tensor := range r.Tensors() {
		data, _, err := r.Read(tensor.Name)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, content{tensor, data})
	}
	return all, r.Metadata(), nil
}

// framed puts the length before a header and data after it.
func framed(header string, data ...byte) []byte {
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), []byte(header), data)
}

// allocated returns the bytes that f allocates in total, freed or not.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// allDTypes are the types of the format.
func allDTypes() []safetensors.DType {
	var all []safetensors.DType
	for d := safetensors.DType(1); d.Bits() > 0; d++ {
		all = append(all, d)
	}
	return all
}

// tensors draws the content of a file: any names, types and dims, empty ones and scalars too.
func tensors() *rapid.Generator[[]content] {
	name := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"", "../../etc/passwd", "/abs", "a\x00b", "\x1b[2J", `"\`, "é", "e\u0301", "𝔸", "\u2028", "__metadata", "layer/w:0", "\ufffd", "\x7f",
	})).Filter(func(s string) bool { return s != "__metadata__" })
	one := rapid.Custom(func(t *rapid.T) content {
		d := rapid.SampledFrom(allDTypes()).Draw(t, "dtype")
		dims := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 5).Draw(t, "dims")
		if d.Bits() < 8 {
			dims = append(dims, 4) // whole bytes
		}
		c := content{Tensor: safetensors.Tensor{Name: name.Draw(t, "name"), DType: d, Dims: dims}}
		size, err := c.ByteSize()
		require.NoError(t, err)
		c.data = make([]byte, size)
		seed := rapid.Byte().Draw(t, "seed")
		for i := range c.data {
			c.data[i] = seed + byte(i*7)
		}
		return c
	})
	return rapid.SliceOfNDistinct(one, 0, 8, func(c content) string { return c.Name })
}

// named is ParseDType, for tables of tests.
func named(name string) safetensors.DType {
	d, err := safetensors.ParseDType(name)
	if err != nil {
		panic(err)
	}
	return d
}

// sample is a small file with what the format has.
func sample(t require.TestingT) []byte {
	return write(t, []content{
		{safetensors.Tensor{Name: "w", DType: safetensors.F32, Dims: []int{2, 3}}, bytes.Repeat([]byte{1, 2, 3, 4}, 6)},
		{safetensors.Tensor{Name: "step", DType: safetensors.I64}, []byte{7, 0, 0, 0, 0, 0, 0, 0}},
		{safetensors.Tensor{Name: "é\n", DType: safetensors.BF16, Dims: []int{3}}, []byte{1, 2, 3, 4, 5, 6}},
		{safetensors.Tensor{Name: "none", DType: safetensors.U8, Dims: []int{4, 0}}, []byte{}},
		{safetensors.Tensor{Name: "half", DType: named("F4"), Dims: []int{2, 3}}, []byte{1, 2, 3}},
	}, map[string]string{"format": "pt", "made by": "lazo"})
}

// fails is an io.ReaderAt and an io.Writer that takes some bytes and then no more.
type fails struct {
	good int64
	err  error
}

func (f *fails) ReadAt(p []byte, offset int64) (int, error) { return 0, f.err }

func (f *fails) Write(p []byte) (int, error) {
	if f.good -= int64(len(p)); f.good < 0 {
		return 0, f.err
	}
	return len(p), nil
}
