package export

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/dtype"
	"github.com/lazo-ml/lazo/internal/vfs"
)

// Every dtype survives a round trip.
func TestRoundTrip_dtypes(t *testing.T) {
	for d := dtype.Bool; d < dtype.Count; d++ {
		t.Run(d.String(), func(t *testing.T) {
			s := shapes.Make(dtypes.DType(d), 3, 2)
			v := tensors.FromShape(s)
			require.NoError(t, v.MutableBytes(func(b []byte) {
				for i := range b {
					b[i] = byte(i) & 1
				}
			}))
			p := &Program{Text: "text", Inputs: []Value{{Name: "v", Role: State, Shape: s}}}
			if d.InFile() != "" {
				p.Weights = map[string]*tensors.Tensor{"v": v}
			}
			m := &vfs.Mem{}
			require.NoError(t, p.write(m, "model"))
			got, err := readBack(m)
			require.NoError(t, err)
			require.True(t, got.Inputs[0].Shape.Equal(s))
			if d.InFile() != "" {
				equal(t, p.Weights, got.Weights)
			}
		})
	}
}
