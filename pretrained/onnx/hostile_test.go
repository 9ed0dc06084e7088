package onnx_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/pretrained/onnx"
	"github.com/lazo-ml/lazo/strategies"
)

// Files that are truncated, or in which a few bytes are others, are errors or networks that can be built or not, and
// never a panic.
func TestHostile(t *testing.T) {
	opened, built, refused := 0, 0, 0
	strategy := strategies.Jit(plugintest.CPU(t))
	try := func(text []byte) {
		n, err := onnx.Open(t.Context(), written(t, text), onnx.Options{})
		if err != nil {
			refused++
			require.NotContains(t, err.Error(), "goroutine")
			return
		}
		opened++
		batch := data.Batch{Size: 2}
		for _, in := range n.Inputs {
			if in.DType.String() != "Float32" || len(in.Dims) == 0 || len(in.Dims) > 4 {
				return
			}
			dims, size := []int{2}, 2
			for _, dim := range in.Dims[1:] {
				dims = append(dims, max(1, min(dim, 16)))
				size *= dims[len(dims)-1]
			}
			batch.Fields = append(batch.Fields, data.Named(in.Name, make([]float32, size), dims...))
		}
		state, err := managed.New(strategy, n.Weights())
		if err != nil {
			return
		}
		step := managed.TestStep(func(b *managed.Builder) {
			for name, y := range n.Outputs(b.Scope().In("model"), b.Field) {
				b.Output(name, y)
			}
		})
		inputs, err := strategies.Inputs(batch)
		require.NoError(t, err)
		if err := step.Build(t.Context(), state, inputs); err == nil {
			built++
		}
		require.NoError(t, step.Close())
		require.NoError(t, state.Close())
	}
	r := rand.New(rand.NewPCG(3, 6))
	for _, name := range []string{"mlp", "cnn", "sequence"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".onnx"))
		require.NoError(t, err)
		for range 60 {
			try(text[:r.IntN(len(text))])
		}
		for range 120 {
			changed := append([]byte{}, text...)
			for range 1 + r.IntN(3) {
				changed[r.IntN(len(changed))] = byte(r.IntN(256))
			}
			try(changed)
		}
	}
	t.Logf("%d files are refused, of %d others %d can be built", refused, opened, built)
	require.Greater(t, refused, 100)
	require.Greater(t, built, 20)
}

// Inputs of another dtype or shape than in the file are errors of the step.
func TestInputs(t *testing.T) {
	n := opened(t, "mlp", onnx.Options{})
	for want, field := range map[string]data.Field{
		"should have dtype Float32, got dtype Int32": data.X(make([]int32, 4), 1, 4),
		"has invalid shape":                          data.X(make([]float32, 5), 1, 5),
		"should be rank 2":                           data.X(make([]float32, 4), 1, 2, 2),
	} {
		state, err := managed.New(strategies.Jit(plugintest.CPU(t)), n.Weights())
		require.NoError(t, err)
		step := managed.TestStep(func(b *managed.Builder) { b.Output("y", n.Outputs(b.Scope().In("model"), b.Field)["logits"]) })
		_, _, err = step.Step(t.Context(), state, data.Batch{Size: 1, Fields: []data.Field{field}})
		require.ErrorContains(t, err, want)
		require.NoError(t, step.Close())
		require.NoError(t, state.Close())
	}
}
