package xla_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// TestR17_unknownClientOptions: the CPU plugin ignores unknown names; Open reports them, with the known ones.
func TestR17_unknownClientOptions(t *testing.T) {
	plugintest.Uncached(t) // the loaded library keeps its counts
	before := pjrt.Live()
	for _, opts := range [][]xla.Option{
		{xla.ClientOption("cpu_device_countt", 4)},
		{xla.ClientOption("memory_fraction", 0.5), xla.ClientOption("cpu_device_count", 2)},
		{xla.ClientOption("", true)},
	} {
		r, err := xla.Open(t.Context(), xla.CPU, opts...)
		require.ErrorIs(t, err, xla.ErrInvalidArgument)
		require.Nil(t, r)
		require.Regexp(t, `^xla: client option "(cpu_device_countt|memory_fraction|)": /.*\.so: the plugin cpu does not know it: expected one of cpu_device_count: invalid argument$`, err.Error())
	}
	require.Equal(t, before, pjrt.Live())
	require.Equal(t, 2, plugintest.Uncached(t, xla.ClientOption("cpu_device_count", 2)).NumDevices())
}
