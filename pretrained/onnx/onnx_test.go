package onnx_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/pretrained/onnx"
	"github.com/lazo-ml/lazo/strategies"
)

// array is one of testdata/models.py.
type array struct {
	DType string
	Dims  []int
	Data  json.RawMessage
}

func (a array) flat(t *testing.T) any {
	t.Helper()
	to := map[string]any{"float32": new([]float32), "float64": new([]float64), "int32": new([]int32), "int64": new([]int64), "bool": new([]bool)}[a.DType]
	require.NoError(t, json.Unmarshal(a.Data, to), a.DType)
	switch to := to.(type) {
	case *[]float32:
		return *to
	case *[]float64:
		return *to
	case *[]int32:
		return *to
	case *[]int64:
		return *to
	}
	return *to.(*[]bool)
}

func (a array) numbers(t *testing.T) (all []float64) {
	t.Helper()
	if a.DType != "bool" {
		require.NoError(t, json.Unmarshal(a.Data, &all))
		return all
	}
	for _, x := range a.flat(t).([]bool) {
		all = append(all, map[bool]float64{true: 1}[x])
	}
	return all
}

// example is a model's inputs, and ONNX Runtime's outputs.
type example struct {
	Name                       string
	Model                      []byte
	Operators, Constants       []string
	Inputs, Outputs, Gradients map[string]array
	Norm                       float64 // of the gradients of all weights
	Error                      float64 // of ONNX Runtime, where it is near the limit
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	if filepath.Ext(file) == ".gz" {
		r, err := gzip.NewReader(bytes.NewReader(text))
		require.NoError(t, err)
		text, err = io.ReadAll(r)
		require.NoError(t, err)
	}
	require.NoError(t, json.Unmarshal(text, into))
}

func exampleOf(t *testing.T, name string) (e example) {
	t.Helper()
	read(t, name+".json", &e)
	return e
}

func written(t *testing.T, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// run computes a step of a state with a network's weights.
func run(t *testing.T, n *onnx.Network, batch data.Batch, build func(b *managed.Builder)) loop.Logs {
	t.Helper()
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)), n.Weights())
	require.NoError(t, err)
	step := managed.TestStep(build)
	_, logs, err := step.Step(t.Context(), state, batch)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, step.Close())
		require.NoError(t, state.Close())
	})
	return logs
}

// compare returns the largest difference to ONNX Runtime's outputs, relative to the largest number of an output if that
// is above 1. The inputs are one example, for their first axes may differ.
func (e example) compare(t *testing.T, path string) (off float64) {
	t.Helper()
	options := onnx.Options{Constants: map[string]any{}}
	for _, name := range e.Constants {
		options.Constants[name] = e.Inputs[name].flat(t).([]int64)[0]
	}
	n, err := onnx.Open(t.Context(), path, options)
	require.NoError(t, err)
	batch := data.Batch{Size: 1}
	for _, in := range n.Inputs {
		of := e.Inputs[in.Name]
		batch.Fields = append(batch.Fields, data.Named(in.Name, of.flat(t), append([]int{1}, of.Dims...)...))
	}
	logs := run(t, n, batch, func(b *managed.Builder) {
		out := n.Outputs(b.Scope().In("model"), func(name string) *graph.Node { return graph.Reshape(b.Field(name), e.Inputs[name].Dims...) })
		for name, y := range out {
			require.Equal(t, e.Outputs[name].Dims, append([]int{}, y.Shape().Dimensions...), name)
			require.Equal(t, e.Outputs[name].DType, strings.ToLower(y.DType().String()), name)
			b.Output(name, graph.ExpandAxes(graph.ConvertDType(y, dtypes.Float64), 0))
		}
	})
	require.NotEmpty(t, e.Outputs)
	for name, of := range e.Outputs {
		got, err := managed.Array(logs, name)
		require.NoError(t, err)
		want, largest := of.numbers(t), 1.0
		for _, x := range want {
			largest = max(largest, math.Abs(x))
		}
		require.Len(t, got.Flat, len(want))
		for i, x := range got.Flat.([]float64) {
			d := math.Abs(x-want[i]) / largest
			require.False(t, math.IsNaN(d), "%s: %g at %d, expected %g", name, x, i, want[i])
			off = max(off, d)
		}
	}
	return off
}

// Models exported by torch, by both of its exporters, compute as ONNX Runtime.
func TestModels(t *testing.T) {
	for _, name := range []string{"mlp", "mlp_dynamo", "cnn", "texts", "texts_dynamo", "sequence"} {
		t.Run(name, func(t *testing.T) {
			off := exampleOf(t, name).compare(t, filepath.Join("testdata", name+".onnx"))
			t.Logf("the largest difference is %.2g", off)
			require.Less(t, off, 1e-5)
		})
	}
}

// The models of magika and silero-vad compute as ONNX Runtime.
func TestInteropONNX(t *testing.T) {
	folder := os.Getenv("LAZO_PRETRAINED")
	if folder == "" {
		t.Skip("NOT TESTED with magika and silero-vad: make pretrained does that")
	}
	text, err := os.ReadFile(filepath.Join(folder, "onnx.json"))
	require.NoError(t, err)
	var all []example
	require.NoError(t, json.Unmarshal(text, &all))
	require.Len(t, all, 7)
	for _, e := range all {
		t.Run(e.Name, func(t *testing.T) {
			off := e.compare(t, filepath.Join(folder, "onnx", e.Name))
			t.Logf("the largest difference is %.2g", off)
			require.Less(t, off, 1e-5+e.Error)
		})
	}
}
