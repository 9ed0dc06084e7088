package xla_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFlags_devicesOfTheHost: XLA's flag for the number of devices applies unless a client option sets it; the plugin
// ignores it.
func TestFlags_devicesOfTheHost(t *testing.T) {
	got := task{}.inChild(t, "", "XLA_FLAGS=--xla_force_host_platform_device_count=2 --xla_force_host_platform_device_count=3")
	require.Zero(t, got.code, got.stderr)
	require.Empty(t, got.Error)
	require.Equal(t, 3, got.Devices)
}
