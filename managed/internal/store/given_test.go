package store

import (
	"io"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
)

func TestGive(t *testing.T) {
	scope := model.NewStore().RootScope()
	w, b := scope.VariableWithValue("w", []float32{0, 0}), scope.VariableWithValue("b", float32(0))
	given := &Given{
		Tensors: map[string]*Tensor{"/w": tensors.FromValue([]float32{1, 2})},
		Initial: map[string]*Tensor{"/w": tensors.FromValue([]float32{9, 9}), "/b": tensors.FromScalar(float32(3))},
	}
	require.NoError(t, given.give([]*Variable{w, b}))
	for v, want := range map[*Variable]any{w: []float32{1, 2}, b: float32(3)} { // a checkpoint's goes first
		got, err := v.Value()
		require.NoError(t, err)
		require.Equal(t, want, got.Value())
	}
	c := given.Clone()
	c.Forget(func(name string) bool { return name == "/b" })
	require.NotContains(t, c.Initial, "/b")
	require.Contains(t, given.Initial, "/b", "a clone has its own")
}

// One wrong value, and no variable gets any.
func TestGive_allOrNone(t *testing.T) {
	scope := model.NewStore().RootScope()
	w, b := scope.VariableWithValue("w", []float32{0, 0}), scope.VariableWithValue("b", float32(0))
	for want, given := range map[string]*Given{
		"/b is (Float32)[2], expected (Float32); given, but not in the model so far: /c": {Initial: map[string]*Tensor{
			"/w": tensors.FromValue([]float32{1, 2}), "/b": tensors.FromValue([]float32{1, 2}), "/c": tensors.FromScalar(1.0)}},
		"/b (Float32) is missing":                        {Initial: map[string]*Tensor{"/w": tensors.FromValue([]float32{1, 2})}},
		"/b had a given value, which a step took before": {Initial: map[string]*Tensor{"/w": tensors.FromValue([]float32{1, 2})}, spent: map[string]bool{"/b": true}},
	} {
		require.ErrorContains(t, given.give([]*Variable{w, b}), want)
		v, err := w.Value()
		require.NoError(t, err)
		require.Equal(t, []float32{0, 0}, v.Value())
	}
}

func TestLate(t *testing.T) {
	late := Late{}
	writes := 0
	file := func(data ...byte) checkpoint.Tensor {
		return checkpoint.Tensor{Dims: []int{2}, Write: func(w io.Writer) error { writes++; _, err := w.Write(data); return err }}
	}
	lazy, err := late.FromFile(file(3, 4), dtypes.Uint8)
	require.NoError(t, err)
	require.Zero(t, writes, "it is read when moved")
	for range 2 {
		v, err := late.CopyOf(lazy)
		require.NoError(t, err)
		require.Equal(t, []uint8{3, 4}, v.Value())
	}
	now, err := late.FromFile(checkpoint.Tensor{Dims: []int{2}, Data: []byte{5, 6}}, dtypes.Uint8)
	require.NoError(t, err)
	require.Equal(t, []uint8{5, 6}, now.Value())
	for n, data := range map[string][]byte{"1 bytes": {1}, "3 bytes": {1, 2, 3}} {
		lazy, err := late.FromFile(file(data...), dtypes.Uint8)
		require.NoError(t, err)
		_, err = late.CopyOf(lazy)
		require.ErrorContains(t, err, n+" for (Uint8)[2], expected 2")
	}
	g := Given{Late: late, Tensors: map[string]*Tensor{"/a": lazy}, Initial: map[string]*Tensor{"/b": now}}
	require.Empty(t, g.InitialLate(), "that of the checkpoint is no initial value")
	g.Initial["/c"] = lazy
	require.Len(t, g.InitialLate(), 1)
}
