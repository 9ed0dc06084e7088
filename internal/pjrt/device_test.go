package pjrt

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/install"
)

func TestPluginAndDevices(t *testing.T) {
	c := openCPU(t, 2)
	installed, err := install.Find("cpu", "")
	require.NoError(t, err)
	assert.Equal(t, installed.API, c.Plugin().Version().String(), "what the table says")
	attributes, err := c.Plugin().Attributes()
	require.NoError(t, err)
	assert.Len(t, attributes["stablehlo_current_version"], 3)
	assert.Contains(t, c.Plugin().Extensions(), Extension(4), "layouts")
	assert.Equal(t, "layouts", Extension(4).String())
	assert.Equal(t, "extension 99", Extension(99).String())
	assert.Equal(t, "cpu", c.Platform())
	assert.NotEmpty(t, c.PlatformVersion())
	assert.Zero(t, c.ProcessIndex())
	require.Len(t, c.Devices(), 2)
	assert.Equal(t, c.Devices(), c.AddressableDevices())
	for i, d := range c.Devices() {
		assert.Equal(t, i, d.ID())
		assert.Equal(t, "cpu", d.Kind())
		assert.Contains(t, strings.ToLower(d.String()), "cpu", "TFRT_CPU_0 of 0.81, cpu:0 of 0.106")
		assert.Zero(t, d.ProcessIndex())
		memories, err := d.Memories()
		require.NoError(t, err)
		assert.True(t, memories[0].Default)
		_, err = d.Attributes()
		require.NoError(t, err)
		_, err = d.MemoryStats()
		require.ErrorIs(t, err, ErrUnimplemented)
	}
}
