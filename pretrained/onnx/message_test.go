package onnx_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/pretrained/onnx"
)

// field is one of a message, a message or a text.
func field(number byte, text []byte) []byte {
	return append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(text))), text...)
}

// A file of empty messages or texts, of two bytes each, is an error before they take memory.
func TestOpen_parts(t *testing.T) {
	for name, graph := range map[string][]byte{
		"nodes":      bytes.Repeat([]byte{1<<3 | 2, 0}, 600_000),
		"weights":    bytes.Repeat([]byte{5<<3 | 2, 0}, 600_000),
		"attributes": field(1, bytes.Repeat([]byte{5<<3 | 2, 0}, 600_000)),
		"names":      field(1, bytes.Repeat([]byte{1<<3 | 2, 0}, 600_000)),
	} {
		path := written(t, field(7, graph))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := onnx.Open(t.Context(), path, onnx.Options{})
		runtime.ReadMemStats(&after)
		require.ErrorContains(t, err, "more than 500000 messages and texts", name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20), name)
	}
}

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
