package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// TestInteropFlax trains a perceptron, exports its weights for Flax, has Python compute with them, and takes back what
// Python writes.
func TestInteropFlax(t *testing.T) {
	interpreter := os.Getenv("LAZO_PYTHON")
	if interpreter == "" {
		t.Skip("NOT TESTED against the Python package: make interop does that")
	}
	r := plugintest.CPU(t)
	state, err := managed.New(strategies.Jit(r), managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	require.NoError(t, err)
	defer state.Close()
	model := func(b *managed.Builder) {
		h := graph.Tanh(layers.Dense(b.Scope().In("h"), b.Field("x"), true, 5))
		out := layers.Dense(b.Scope().In("out"), h, true, 2)
		b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), out)))
		b.Output("out", out)
	}
	x := []float32{0.1, -0.2, 0.3, 1, 2, -3, 0, 0.5, -0.5, 4, -4, 1}
	set, err := data.New(data.X(x, 4, 3), data.Y(make([]float32, 8), 4, 2))
	require.NoError(t, err)
	train, test := managed.TrainStep(model), managed.TestStep(model)
	defer train.Close()
	defer test.Close()
	var y []float32
	for batch, err := range set.Batches(4).All() {
		require.NoError(t, err)
		_, _, err = train.Step(t.Context(), state, batch)
		require.NoError(t, err)
		_, logs, err := test.Step(t.Context(), state, batch)
		require.NoError(t, err)
		entry, err := logs.Get("out")
		require.NoError(t, err)
		matrix, err := entry.Any()
		require.NoError(t, err)
		for _, row := range matrix.(*tensors.Tensor).Value().([][]float32) {
			y = append(y, row...)
		}
	}

	dir, out := t.TempDir(), t.TempDir()
	f, err := checkpoint.Open(dir, checkpoint.Options{})
	require.NoError(t, err)
	content, err := state.Content(t.Context())
	require.NoError(t, err)
	require.NoError(t, f.Save(t.Context(), 1, content))
	require.NoError(t, f.Close())
	weights := filepath.Join(out, "weights.safetensors")
	require.Equal(t, result{0, "step 1: 4 tensors in " + weights + "\n", ""}, run(t, "ckpt", "export", "--flax", dir, weights))
	writeArrays(t, filepath.Join(out, "batch.safetensors"), map[string][]float32{"x": x, "y": y}, 4)
	script := filepath.Join("..", "..", "checkpoint", "safetensors", "testdata", "safetensors_check.py")
	said, err := exec.CommandContext(t.Context(), interpreter, script, "flax", out).CombinedOutput()
	require.NoError(t, err, "%s", said)
	t.Logf("weights of lazo in Python: %s", said)

	back := filepath.Join(out, "back")
	require.Zero(t, run(t, "ckpt", "import", filepath.Join(out, "doubled.safetensors"), back).code)
	f, err = checkpoint.Open(back, checkpoint.Options{ReadOnly: true})
	require.NoError(t, err)
	defer f.Close()
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	require.Len(t, c.Tensors, 4)
	for flax, variable := range map[string]string{"params/h/dense/kernel": "/h/dense/weights", "params/out/dense/bias": "/out/dense/biases"} {
		v, err := state.Value(variable)
		require.NoError(t, err)
		got, ok := c.Tensor(flax)
		require.True(t, ok)
		require.Equal(t, v.Shape().Dimensions, got.Dims)
		values, err := safetensors.Values[float32](got.Data)
		require.NoError(t, err)
		var want []float32
		require.NoError(t, v.ConstBytes(func(b []byte) {
			own, err := safetensors.Values[float32](b)
			require.NoError(t, err)
			for _, w := range own {
				want = append(want, 2*w)
			}
		}))
		require.Equal(t, want, values)
	}
}

// writeArrays writes matrices with that many rows.
func writeArrays(t *testing.T, path string, arrays map[string][]float32, rows int) {
	t.Helper()
	var list []safetensors.Tensor
	for name, a := range arrays {
		list = append(list, safetensors.Tensor{Name: name, DType: safetensors.F32, Dims: []int{rows, len(a) / rows}})
	}
	file, err := os.Create(path)
	require.NoError(t, err)
	w, err := safetensors.NewWriter(file, list, nil)
	require.NoError(t, err)
	for _, tensor := range list {
		_, err := w.Write(tensor.Name, safetensors.Bytes(arrays[tensor.Name]))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, file.Close())
}
