package store

import (
	"errors"
	"io"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/strategies"
)

// After an error there is no value, and a later step draws the same as if there had been none.
func TestAdopt_drawsTheSameAfterAnError(t *testing.T) {
	var drawn []any
	for _, fails := range []bool{false, true} {
		s, of := &Store{}, model.NewStore()
		s.Init(strategies.Jit(plugintest.Go(t)))
		require.NoError(t, of.SetRNGStateFromSeed(5))
		of.RootScope().WithInitializer(of.RandomNormal).VariableWithShape("w", shapes.Make(dtypes.Float32, 3))
		given := &Given{Initial: map[string]*Tensor{"/b": tensors.FromScalar(int64(7))}, MayDraw: func(string) bool { return true }, Late: Late{}}
		of.RootScope().VariableWithShape("b", shapes.Make(dtypes.Int64))
		if fails {
			broken := errors.New("the disk is gone")
			late, err := given.Late.FromFile(checkpoint.Tensor{Write: func(io.Writer) error { return broken }}, dtypes.Int64)
			require.NoError(t, err)
			good := given.Initial["/b"]
			given.Initial["/b"] = late
			require.ErrorIs(t, s.Adopt(s.Fresh(of), of, given), broken)
			require.Zero(t, s.Len())
			given.Initial["/b"] = good
		}
		require.NoError(t, s.Adopt(s.Fresh(of), of, given))
		require.Empty(t, s.Fresh(of))
		require.EqualValues(t, 7, valueOf(t, s, "/b"))
		drawn = append(drawn, valueOf(t, s, "/w"))
		require.NoError(t, s.Close(func() error { return nil }))
	}
	require.Equal(t, drawn[0], drawn[1])
	require.NotEqual(t, []float32{0, 0, 0}, drawn[0])
}

func TestHostValue(t *testing.T) {
	v, err := HostValue(nil)
	require.NoError(t, err)
	require.Nil(t, v)
	w := model.NewStore().RootScope().VariableWithValue("w", float32(2))
	v, err = HostValue(w)
	require.NoError(t, err)
	require.NoError(t, Empty(w))
	require.True(t, w.HasValue(), "GoMLX still sees a value")
	require.Equal(t, float32(2), v.Value(), "a copy")
}
