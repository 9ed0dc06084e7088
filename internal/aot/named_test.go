package aot

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

// Descriptions for plugins: the table of GPUs can be read, and a TPU's child asks no metadata server.
func TestNamed(t *testing.T) {
	named := func(kind, name string) (options map[string]any, environment []string, err error) {
		m, err := Named("", kind, name, map[string]any{})
		return m.Options, m.Environment, err
	}
	require.Equal(t, []string{"a100", "h100"}, DeviceKinds())
	for _, kind := range DeviceKinds() {
		options, environment, err := named("cuda", kind+":1x2x8")
		require.NoError(t, err)
		require.Empty(t, environment)
		require.Equal(t, "1x2x8", options["topology"])
		config := options["target_config"].(string)
		require.NotContains(t, config, "%!")
		require.Contains(t, config, `name: "NVIDIA `)
		require.Equal(t, strings.Count(config, "{"), strings.Count(config, "}"))
	}
	for name, bounds := range map[string]any{"v5e:4x4": nil, "v5e:2x2": nil, "v5e:1x1": []int64{1, 1, 1}, "v5e:1x2": []int64{1, 2, 1}} {
		options, environment, err := named("tpu", name)
		require.NoError(t, err)
		require.Equal(t, bounds, options["chips_per_host_bounds"], name)
		require.Contains(t, environment, "TPU_SKIP_MDS_QUERY=1")
	}
	for _, name := range []string{"", "v5e", "v5e:", ":2x2", "v5e:2x", "v5e:0x2", "v5e:2x2x2x2", "v5e:axb"} {
		_, _, err := named("tpu", name)
		require.ErrorIs(t, err, pjrt.ErrInvalidArgument, name)
	}
	for _, name := range []string{"", "h100", "h100:8", "h100:1x1", "h100:0x1x8", "p3:1x1x8", ":1x1x8"} {
		_, _, err := named("cuda", name)
		require.ErrorIs(t, err, pjrt.ErrInvalidArgument, name)
	}
}
