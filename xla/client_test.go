package xla_test

import (
	"sync"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/xla"
)

func TestF41_AfterClose(t *testing.T) {
	for _, name := range []string{xla.CPU, xla.Go} {
		t.Run(name, func(t *testing.T) {
			runtime, err := xla.Open(t.Context(), name)
			require.NoError(t, err)
			shape := shapes.Make(dtypes.Float32, 1)
			buffer, err := runtime.BufferFromFlatData(0, []float32{1}, shape)
			require.NoError(t, err)
			require.NoError(t, buffer.Finalize())
			var group sync.WaitGroup
			for range 8 {
				group.Go(func() { assert.NoError(t, runtime.Close()) })
			}
			group.Wait()
			runtime.Finalize()
			assert.True(t, runtime.IsFinalized())
			assert.Zero(t, runtime.NumDevices())
			assert.Empty(t, runtime.Devices())
			assert.NotEmpty(t, runtime.Description())
			_, err = runtime.BufferFromFlatData(0, []float32{1}, shape)
			require.ErrorIs(t, err, xla.ErrClosed)
			if name == xla.Go {
				_, _, err = runtime.NewSharedBuffer(0, shape)
				require.ErrorIs(t, err, xla.ErrClosed)
			}
			builder := runtime.Builder("late")
			_, err = builder.Main().Parameter("x", shape, nil)
			require.ErrorIs(t, err, xla.ErrClosed)
			_, err = builder.Compile()
			require.ErrorIs(t, err, xla.ErrClosed)
			// Closing one client leaves others alone.
			other, err := xla.Open(t.Context(), name)
			require.NoError(t, err)
			assert.NotZero(t, other.NumDevices())
			require.NoError(t, other.Close())
		})
	}
}
