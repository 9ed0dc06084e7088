package pjrt

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Programs compile for devices that are not present.
func TestTopology(t *testing.T) {
	before := Live()
	p, err := Load(freshFake(t, buildFake(t)))
	require.NoError(t, err)
	topology, err := p.NewTopology("fake:4", nil)
	require.NoError(t, err)
	assert.Equal(t, "fake", topology.Platform())
	assert.Equal(t, "1", topology.PlatformVersion())
	assert.Empty(t, topology.Attributes())
	assert.Equal(t, DeviceDescription{ID: 3, Kind: "fake", Text: "FAKE"}, topology.Devices()[3])
	assert.Equal(t, map[string]any{"cores": int64(7)}, topology.DeviceAttributes()[3])
	compiled, err := topology.Compile([]byte("fake 3 2 1 4"), CompileOptions{Partitions: 4})
	require.NoError(t, err)
	four := Shape{Float32, []int{4}}
	assert.Equal(t, []Shape{four, four, four}, compiled.Parameters)
	assert.Equal(t, []Shape{four, four}, compiled.Outputs)
	assert.Equal(t, map[int]int{0: 0}, compiled.Donated)
	assert.Equal(t, "hlo", compiled.Format)
	assert.Nil(t, compiled.Cost, "the fake does not reckon")
	assert.EqualValues(t, 4, compiled.Memory.Code)

	_, err = topology.Compile([]byte("nonsense"), CompileOptions{})
	require.ErrorIs(t, err, ErrInvalidArgument)
	assert.Contains(t, err.Error(), "pjrt: compile: PJRT_Compile: INVALID_ARGUMENT: not a program of the fake")
	_, err = topology.Compile(nil, CompileOptions{})
	require.ErrorIs(t, err, ErrInvalidArgument)
	_, err = topology.Compile([]byte(strings.Repeat("(", 300)), CompileOptions{})
	require.Error(t, err)
	_, err = p.NewTopology("nowhere", nil)
	require.ErrorIs(t, err, ErrInvalidArgument)
	assert.Contains(t, err.Error(), `pjrt: describe the topology "nowhere": `)
	_, err = p.NewTopology("fake", map[string]any{"n": 1})
	require.ErrorContains(t, err, `"n"`)

	require.NoError(t, topology.Close())
	require.ErrorIs(t, topology.Close(), ErrClosed)
	_, err = topology.Compile([]byte("fake 3 2 1 4"), CompileOptions{})
	require.ErrorIs(t, err, ErrClosed)
	assert.Equal(t, before, Live())
	left, _, _ := fakeState(t, p)
	assert.Zero(t, left)
}
