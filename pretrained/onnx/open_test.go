package onnx_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/pretrained/onnx"
)

// ending is a context that ends when it is asked often.
type ending struct {
	context.Context
	left *int
}

func (e ending) Err() error {
	if *e.left--; *e.left < 0 {
		return context.Canceled
	}
	return nil
}

// The context's end stops a long Open, which asks at each weight and node.
func TestOpen_ends(t *testing.T) {
	const weights = 3000
	node := slices.Concat(field(1, []byte("x")), field(2, []byte("z")), field(4, []byte("Relu")))
	shape := field(2, field(1, []byte{1 << 3, 1}))
	graph := slices.Concat(field(1, node), field(11, slices.Concat(field(1, []byte("x")), field(2, field(1, append([]byte{1 << 3, 1}, shape...))))), field(12, field(1, []byte("z"))))
	for i := range weights {
		name := fmt.Append(nil, "w", i)
		graph = append(graph, field(5, slices.Concat([]byte{1 << 3, 1, 2 << 3, 1}, field(8, name), field(9, make([]byte, 4))))...)
	}
	path := written(t, slices.Concat(field(8, []byte{2 << 3, 18}), field(7, graph)))
	left := weights
	_, err := onnx.Open(ending{t.Context(), &left}, path, onnx.Options{})
	require.ErrorIs(t, err, context.Canceled)
	left = 2 * weights
	_, err = onnx.Open(ending{t.Context(), &left}, path, onnx.Options{})
	require.NoError(t, err)
}

func TestOpen_options(t *testing.T) {
	for want, options := range map[string]onnx.Options{
		`the constants are ["sr"], expected names of inputs: ["x"]`:     {Constants: map[string]any{"sr": 1}},
		`the constant "x" is (Float64)[1, 4], expected (Float32)[-1 4]`: {Constants: map[string]any{"x": [][]float64{{1, 2, 3, 4}}}},
		`the constant "x": `:                          {Constants: map[string]any{"x": "text"}},
		`the network has no input`:                    {Constants: map[string]any{"x": [][]float32{{1, 2, 3, 4}}}},
		`Options.Outputs has "hidden"`:                {Outputs: []string{"hidden"}},
		`Options.Outputs has "logits", expected each`: {Outputs: []string{"logits", "logits"}},
	} {
		_, err := onnx.Open(t.Context(), "testdata/mlp.onnx", options)
		require.ErrorContains(t, err, want)
	}
	_, err := onnx.Open(t.Context(), t.TempDir(), onnx.Options{})
	require.ErrorContains(t, err, "is not a regular file")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = onnx.Open(ended, "testdata/mlp.onnx", onnx.Options{})
	require.ErrorIs(t, err, context.Canceled)
}
