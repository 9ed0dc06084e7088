package safetensors_test

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

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
	require.ErrorContains(t, err, "the writer is closed")

	w, err = safetensors.NewWriter(io.Discard, nil, nil)
	require.NoError(t, err)
	_, err = w.Write("a", nil)
	require.ErrorContains(t, err, "all 0 tensors of the header are written")
}

// short is a writer that breaks the contract of io.Writer.
type short struct{}

func (short) Write(p []byte) (int, error) { return len(p) - 1, nil }
