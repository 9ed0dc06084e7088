package pjrt

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFunctionThatThePluginLacks(t *testing.T) {
	p, err := Load(freshFake(t, buildFake(t)))
	require.NoError(t, err)
	c, err := p.NewClient(nil, nil)
	require.NoError(t, err)
	_, err = c.Devices()[0].MemoryStats()
	require.ErrorIs(t, err, ErrUnimplemented)
	assert.Contains(t, err.Error(), "PJRT_Device_MemoryStats")
	require.NoError(t, c.Close())
}
