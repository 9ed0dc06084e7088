package onnx_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
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
