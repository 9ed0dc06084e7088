package store

import (
	"errors"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

func (d *devices) Put(name string, t *Tensor) (compute.Buffer, error) {
	if d.err != nil && name == DataPrefix+"y" {
		return nil, d.err
	}
	return &buffer{bytes: name}, nil
}

func TestReside(t *testing.T) {
	set, err := data.New(data.X([]float32{1, 2, 3, 4}, 2, 2), data.Y([]int32{0, 1}, 2))
	require.NoError(t, err)
	resident := data.OnDevice(set)
	on := &devices{err: errors.New("out of memory")}
	var s Store
	s.Init(on)
	_, err = s.Reside(resident)
	require.ErrorIs(t, err, on.err)
	require.ErrorContains(t, err, `move field "y" of the set, int32 [2], to the device: `)
	require.Equal(t, 1, on.freed, "the other field")
	on.err = nil
	buffers, err := s.Reside(resident)
	require.NoError(t, err)
	require.Len(t, buffers, 2)
	again, err := s.Reside(resident)
	require.NoError(t, err)
	require.Equal(t, buffers, again, "moved once")
	none, err := s.Reside(nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestTensorOf(t *testing.T) {
	flat := []int32{1, 2, 3, 4}
	v, err := TensorOf(data.Array{Flat: flat, Dims: []int{2, 2}})
	require.NoError(t, err)
	flat[0] = 9
	require.Equal(t, [][]int32{{1, 2}, {3, 4}}, v.Value(), "a copy")
	require.Equal(t, dtypes.Int32, DType(data.Array{Flat: flat}))
}
