package pjrt

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

func TestCompileOptionsBytes(t *testing.T) {
	bytes, err := CompileOptions{Replicas: 2, Partitions: 3, Devices: []int{0, 1, 2, 3, 4, 5}, SPMD: true, Shardy: true, Debug: map[string]any{"a": 7}}.marshal()
	require.NoError(t, err)
	fields := map[protowire.Number][]byte{}
	read := func(number protowire.Number, value uint64, data []byte) error {
		if data == nil {
			data = protowire.AppendVarint(nil, value)
		}
		fields[number] = data
		return nil
	}
	require.NoError(t, eachField(bytes, read))
	assert.Equal(t, []byte("\x0a\x01a\x12\x02\x18\x07"), fields[7])
	build := fields[3]
	clear(fields)
	require.NoError(t, eachField(build, read))
	assert.Equal(t, []byte{2}, fields[4])
	assert.Equal(t, []byte{3}, fields[5])
	assert.Equal(t, []byte{1}, fields[6])
	assert.Equal(t, []byte{1}, fields[19])
	// Three partitions, each on the devices of its two replicas.
	assert.Equal(t, []byte("\x08\x02\x10\x03\x1a\x04\x0a\x02\x00\x03\x1a\x04\x0a\x02\x01\x04\x1a\x04\x0a\x02\x02\x05"), fields[9])
	for range 10 {
		again, err := CompileOptions{Debug: map[string]any{"a": 1, "b": true, "c": "x", "d": 1.5}}.marshal()
		require.NoError(t, err)
		first, err := CompileOptions{Debug: map[string]any{"d": 1.5, "c": "x", "b": true, "a": 1}}.marshal()
		require.NoError(t, err)
		assert.Equal(t, first, again)
	}
}
