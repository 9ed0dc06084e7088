package managed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/runs"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// A run that goes on with fewer devices is told so.
func TestF11_fewerDevicesAreTold(t *testing.T) {
	r := plugintest.CPU(t, xla.ClientOption("cpu_device_count", 2))
	both, err := strategies.DataParallel(r)
	require.NoError(t, err)
	s, f := newSession(t), folder(t, checkpoint.Options{})
	s.run(both, f, 8)
	state := s.state(strategies.Jit(r))
	require.Regexp(t, `^cpu \S+, PJRT API \d+\.\d+$`, state.Versions()["plugin"])
	start, err := runs.Resume(t.Context(), f, state)
	require.NoError(t, err)
	require.Equal(t, []runs.Difference{{What: "devices", Saved: "2", Now: "1"}}, start.Differences)
	start, err = runs.Resume(t.Context(), f, s.state(both))
	require.NoError(t, err)
	require.Empty(t, start.Differences)
	t.Log("F11: saved on 2 devices, resumed on 1: told in Start.Differences and in the log; on 2: nothing")
}
