package safetensors_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

//lazo:norace
func TestWriterRefusesTensors(t *testing.T) {
	many := make([]safetensors.Tensor, 1_000_001)
	long := make([]safetensors.Tensor, 26_000) // of 4 kB: more than 100 MB
	for i := range long {
		long[i] = safetensors.Tensor{Name: strings.Repeat("n", 4080) + string(rune(0x10000+i)), DType: safetensors.U8}
	}
	one := func(name string, d safetensors.DType, dims ...int) []safetensors.Tensor {
		return []safetensors.Tensor{{Name: name, DType: d, Dims: dims}}
	}
	for name, c := range map[string]struct {
		tensors []safetensors.Tensor
		message string
		limit   bool
	}{
		"no dtype":           {one("w", 0), `DType(0) is not a dtype`, false},
		"unknown dtype":      {one("w", 99), `DType(99) is not a dtype`, false},
		"negative":           {one("w", safetensors.F32, 2, -1), `axis 1 of [2 -1] has the length -1`, false},
		"overflow":           {one("w", safetensors.F32, math.MaxInt, 2), "overflows an integer", true},
		"overflow in bits":   {one("w", safetensors.F64, 1<<57), "overflows an integer", true},
		"overflow and empty": {one("w", safetensors.F64, 0, 1<<40, 1<<40), "overflows an integer", true},
		"overflow of all":    {append(one("a", safetensors.U8, 1<<59), overflow()...), "the total size overflows", true},
		"half a byte":        {one("w", safetensors.F4, 3), "take 12 bits, expected whole bytes", false},
		"six bits":           {one("w", safetensors.F6E2M3, 2), "take 12 bits, expected whole bytes", false},
		"metadata's name":    {one("__metadata__", safetensors.U8), "taken by the metadata", false},
		"not UTF-8":          {one("a\xff", safetensors.U8), "not valid UTF-8", false},
		"long name":          {one(strings.Repeat("n", 4097), safetensors.U8), "a name of 4097 bytes, expected at most 4096", true},
		"rank":               {one("w", safetensors.U8, make([]int, 33)...), "33 axes, expected at most 32", true},
		"twice":              {append(one("w", safetensors.U8), one("w", safetensors.I8)...), "a second one of this name", false},
		"too many":           {many, "expected at most 1000000", true},
		"header":             {long, "the header takes", true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			_, err := safetensors.NewWriter(&out, c.tensors, nil)
			require.ErrorContains(t, err, "safetensors: write header: ")
			require.ErrorContains(t, err, c.message)
			require.Equal(t, c.limit, errors.Is(err, safetensors.ErrLimit))
			require.Zero(t, out.Len(), "nothing is written")
			t.Log(err)
		})
	}
	for name, metadata := range map[string]map[string]string{"key": {"\xff": ""}, "value": {"k": "\xff"}} {
		_, err := safetensors.NewWriter(io.Discard, nil, metadata)
		require.ErrorContains(t, err, "not valid UTF-8", name)
	}
}

// overflow are tensors that can be counted one by one, but not together.
func overflow() (all []safetensors.Tensor) {
	for i := range 16 {
		all = append(all, safetensors.Tensor{Name: "n" + string(rune('a'+i)), DType: safetensors.U8, Dims: []int{1<<60 - 1}})
	}
	return all
}

func TestWriterRefusesBytes(t *testing.T) {
	list := []safetensors.Tensor{{Name: "a", DType: safetensors.U8, Dims: []int{4}}, {Name: "b", DType: safetensors.U8, Dims: []int{2}}}
	cause := errors.New("no more data")
	pieces := func(sizes ...int) func(io.Writer) error {
		return func(w io.Writer) error {
			for _, n := range sizes {
				if _, err := w.Write(make([]byte, n)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		use     func(w *safetensors.Writer) error
		message string
	}{
		"short":      {func(w *safetensors.Writer) error { _, err := w.Write("a", make([]byte, 3)); return err }, "3 bytes, expected 4"},
		"long":       {func(w *safetensors.Writer) error { _, err := w.Write("a", make([]byte, 5)); return err }, "5 bytes, expected 4"},
		"order":      {func(w *safetensors.Writer) error { _, err := w.Write("b", make([]byte, 2)); return err }, `tensor 0 of the header is "a"`},
		"unknown":    {func(w *safetensors.Writer) error { _, err := w.Write("c", nil); return err }, `tensor "c": tensor 0 of the header is "a"`},
		"func short": {func(w *safetensors.Writer) error { _, err := w.WriteFunc("a", pieces(1, 2)); return err }, "3 bytes, expected 4"},
		"func long":  {func(w *safetensors.Writer) error { _, err := w.WriteFunc("a", pieces(3, 2)); return err }, "more bytes than the header says"},
		"func long, error dropped": {func(w *safetensors.Writer) error {
			_, err := w.WriteFunc("a", func(to io.Writer) error { _ = pieces(4, 1)(to); return nil })
			return err
		}, "more bytes than the header says"},
		"func fails": {func(w *safetensors.Writer) error {
			_, err := w.WriteFunc("a", func(io.Writer) error { return cause })
			return err
		}, "no more data"},
		"inside another": {func(w *safetensors.Writer) error {
			_, err := w.WriteFunc("a", func(io.Writer) error { _, err := w.Write("a", make([]byte, 4)); return err })
			return err
		}, "not ended"},
		"panic": {func(w *safetensors.Writer) error {
			require.Panics(t, func() { _, _ = w.WriteFunc("a", func(io.Writer) error { panic(1) }) })
			return w.Close()
		}, "not ended"},
		"closed early": {func(w *safetensors.Writer) error {
			_, err := w.Write("a", make([]byte, 4))
			require.NoError(t, err)
			return w.Close()
		}, `close: 1 of 2 tensors are written, next is "b"`},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := safetensors.NewWriter(io.Discard, list, nil)
			require.NoError(t, err)
			err = c.use(w)
			require.ErrorContains(t, err, "safetensors: ")
			require.ErrorContains(t, err, c.message)
			require.Equal(t, name == "func fails", errors.Is(err, cause))
			t.Log(err)
			_, again := w.Write("a", make([]byte, 4))
			require.Equal(t, err.Error(), again.Error(), "a file that failed does not go on")
			require.ErrorContains(t, w.Close(), c.message)
		})
	}
}

func TestWriterAfterTheEnd(t *testing.T) {
	var kept io.Writer
	w, err := safetensors.NewWriter(io.Discard, []safetensors.Tensor{{Name: "a", DType: safetensors.U8}}, nil)
	require.NoError(t, err)
	_, err = w.WriteFunc("a", func(to io.Writer) error { kept = to; _, err := to.Write([]byte{1}); return err })
	require.NoError(t, err)
	_, err = kept.Write([]byte{2})
	require.ErrorContains(t, err, "the tensor has ended")
	require.NoError(t, w.Close())
	require.NoError(t, w.Close(), "a second Close")
	_, err = w.Write("a", []byte{1})
	require.ErrorIs(t, err, safetensors.ErrClosed)

	w, err = safetensors.NewWriter(io.Discard, nil, nil)
	require.NoError(t, err)
	_, err = w.Write("a", nil)
	require.ErrorContains(t, err, "all 0 tensors of the header are written")
}

// The destination fails after each number of bytes.
func TestF05_DestinationFails(t *testing.T) {
	full := errors.New("no space left")
	file := sample(t)
	given, metadata, err := read(file)
	require.NoError(t, err)
	var list []safetensors.Tensor
	for _, c := range given {
		list = append(list, c.Tensor)
	}
	for good := range len(file) {
		w, err := safetensors.NewWriter(&fails{int64(good), full}, list, metadata)
		for _, c := range given {
			if err == nil {
				_, err = w.Write(c.Name, c.data)
			}
		}
		require.ErrorIs(t, err, full)
	}
	t.Logf("%d of %d points of failure are reported with their cause", len(file), len(file))

	w, err := safetensors.NewWriter(short{}, nil, nil)
	require.Nil(t, w)
	require.ErrorIs(t, err, io.ErrShortWrite)
}

// short is a writer that breaks the contract of io.Writer.
type short struct{}

func (short) Write(p []byte) (int, error) { return len(p) - 1, nil }
