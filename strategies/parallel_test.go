package strategies

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// Any number of devices and any minimum size works or returns an error.
func TestR29_anyNumberIsAnErrorOrWorks(t *testing.T) {
	r := plugintest.Devices(t, 2)
	// put makes the strategy and moves a value, which asks the rule of Shard.
	put := func(options Parallel) error {
		s, err := DataParallel(r, options)
		if err != nil {
			return err
		}
		for _, v := range []any{float32(1), []float32{1, 2, 3, 4}} {
			b, err := s.Put("/w", value(t, v))
			if err != nil {
				return err
			}
			require.NoError(t, s.Free(b))
		}
		_, err = s.Batch(data.Batch{Fields: []data.Field{data.X([]float32{1, 2}, 2)}})
		return err
	}
	for name, row := range map[string]struct {
		options func(n int) Parallel
		works   []int
	}{
		"Devices":           {func(n int) Parallel { return Parallel{Devices: n} }, []int{0, 1, 2}},
		"ModelDevices":      {func(n int) Parallel { return Parallel{ModelDevices: n} }, []int{0, 1, 2}},
		"FullyShard":        {func(n int) Parallel { return Parallel{Shard: FullyShard(n, 0)} }, []int{1, 2, math.MaxInt}},
		"FullyShard, least": {func(n int) Parallel { return Parallel{Shard: FullyShard(2, n)} }, []int{math.MinInt, -1, 0, 1, 2, 3, math.MaxInt}},
	} {
		for _, n := range []int{math.MinInt, -1, 0, 1, 2, 3, math.MaxInt} {
			var err error
			require.NotPanics(t, func() { err = put(row.options(n)) }, "%s(%d)", name, n)
			works := false
			for _, w := range row.works {
				works = works || n == w
			}
			if name == "FullyShard" && n == 3 { // no axis of the value can be divided by 3
				works = true
			}
			require.Equal(t, works, err == nil, "%s(%d): %v", name, n, err)
		}
	}
	rule := FullyShard(0, 0)("/w", shapes.Make(dtypes.Float32, 4))
	_, err := xla.Mesh{Axes: []xla.MeshAxis{{Name: DataAxis, Size: 2}}}.Part(shapes.Make(dtypes.Float32, 4), rule)
	require.ErrorContains(t, err, "of 0 devices, as given to FullyShard: expected at least 1")
}

func value(t *testing.T, v any) *tensors.Tensor {
	tensor, err := tensors.FromAnyValue(v)
	require.NoError(t, err)
	return tensor
}

// A value that lies on several devices is none to GoMLX, whichever way it asks.
func TestDivided_isNoValueOfGoMLX(t *testing.T) {
	v := &divided{}
	_, shape := v.Shape()
	_, device := v.DeviceNum()
	_, shared := v.Data()
	_, copied := v.CopyToDevice(1)
	for _, err := range []error{shape, device, shared, copied, v.ToFlatData(nil)} {
		require.ErrorIs(t, err, errDivided)
	}
}
