package safetensors_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

func TestReadErrors(t *testing.T) {
	file := sample(t)
	r, err := open(file)
	require.NoError(t, err)
	_, found := r.Tensor("x")
	require.False(t, found)
	for name, c := range map[string]struct {
		use     func() error
		message string
	}{
		"read unknown": {func() error { _, _, err := r.Read("x"); return err }, `safetensors: no such tensor: "x" among the 5 of the file`},
		"copy unknown": {func() error { _, err := r.Copy(io.Discard, "__metadata__"); return err }, `"__metadata__" among the 5`},
		"into unknown": {func() error { _, err := r.ReadInto("x", nil); return err }, `"x" among the 5`},
		"rows unknown": {func() error { _, err := r.ReadRows("x", 0, 0); return err }, `"x" among the 5`},
		"into short": {func() error { _, err := r.ReadInto("w", make([]byte, 23)); return err },
			`safetensors: read tensor "w": 23 bytes to read into, expected 24`},
		"scalar": {func() error { _, err := r.ReadRows("step", 0, 1); return err },
			`safetensors: read rows 0 to 1 of tensor "step": a scalar has none`},
		"rows below":   {func() error { _, err := r.ReadRows("w", -1, 1); return err }, "expected 0 ≤ from ≤ to ≤ 2"},
		"rows above":   {func() error { _, err := r.ReadRows("w", 0, 3); return err }, "expected 0 ≤ from ≤ to ≤ 2"},
		"rows far":     {func() error { _, err := r.ReadRows("w", 1, math.MaxInt); return err }, "expected 0 ≤ from ≤ to ≤ 2"},
		"rows turned":  {func() error { _, err := r.ReadRows("w", 2, 1); return err }, "expected 0 ≤ from ≤ to ≤ 2"},
		"rows of bits": {func() error { _, err := r.ReadRows("half", 0, 1); return err }, "a row of dims [2 3] of F4 is not a whole number of bytes"},
		"copy to none": {func() error { _, err := r.Copy(&fails{0, io.ErrClosedPipe}, "w"); return err },
			`safetensors: copy: write tensor "w": io: read/write on closed pipe`},
		"copy short": {func() error { _, err := r.Copy(short{}, "w"); return err }, "short write"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.use()
			require.ErrorContains(t, err, c.message)
			t.Log(err)
		})
	}
	_, _, err = r.Read("x")
	require.ErrorContains(t, err, `no such tensor: "x"`)
}

// failsFrom fails to read from a point on.
type failsFrom struct {
	io.ReaderAt
	from int64
	err  error
}

func (f failsFrom) ReadAt(p []byte, offset int64) (int, error) {
	if offset+int64(len(p)) > f.from {
		return 0, f.err
	}
	return f.ReaderAt.ReadAt(p, offset)
}

// The source fails, with an error of its own or by an early end, at each byte.
func TestSourceFails(t *testing.T) {
	file := sample(t)
	broken := errors.New("input/output error")
	for from := range len(file) {
		for _, cause := range []error{broken, io.EOF} {
			r, err := safetensors.NewReader(failsFrom{bytes.NewReader(file), int64(from), cause}, int64(len(file)), safetensors.Limits{})
			if err == nil {
				for tensor := range r.Tensors() {
					_, _, one := r.Read(tensor.Name)
					_, two := r.Copy(io.Discard, tensor.Name)
					require.Equal(t, one == nil, two == nil)
					err = errors.Join(err, one)
				}
			}
			require.ErrorContains(t, err, "safetensors: read")
			if cause == broken {
				require.ErrorIs(t, err, broken)
				continue
			}
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.ErrorAs(t, err, new(*safetensors.FormatError))
		}
	}
}

func TestReaderIsShared(t *testing.T) {
	r, err := open(sample(t))
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for tensor := range r.Tensors() {
				if _, _, err := r.Read(tensor.Name); err != nil {
					t.Error(err)
				}
			}
			_ = r.Metadata()
		})
	}
	all.Wait()
	for range r.Tensors() {
		break
	}
	r.Metadata()["format"] = "changed"
	require.Equal(t, "pt", r.Metadata()["format"], "what is given out is a copy")
	tensor, _ := r.Tensor("w")
	tensor.Dims[0] = 99
	tensor, _ = r.Tensor("w")
	require.Equal(t, []int{2, 3}, tensor.Dims)
}
