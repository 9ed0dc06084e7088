package pretrained_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/pretrained"
)

// Blocks of Q8_0 have exactly the bytes of Python's gguf: at halves, of zeros, and of numbers without a scale. Numbers
// that are not finite, or too large, are errors.
func TestQ8(t *testing.T) {
	all, _ := readFile(t, "testdata/gguf/rounding.safetensors")
	got, err := pretrained.Q8(all["numbers"].floats(t))
	require.NoError(t, err)
	for i := range all["numbers"].Dims[0] {
		require.Equal(t, all["blocks"].data[i*34:][:34], got[i*34:][:34], "row %d", i)
	}
	for want, x := range map[string]float32{"the number NaN, expected a finite one": float32(math.NaN()), "the number +Inf": float32(math.Inf(1)), "the number 1e+07 is above the range of Q8_0, 8.319008e+06": 1e7} {
		_, err := pretrained.Q8(append(make([]float32, 31), x))
		require.ErrorContains(t, err, want)
	}
}
