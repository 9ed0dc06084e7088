package managed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// A run that is resumed on fewer devices reports it.
func TestF11_fewerDevicesAreTold(t *testing.T) {
	r := plugintest.CPU(t, xla.ClientOption("cpu_device_count", 2))
	both, err := strategies.DataParallel(r, strategies.Parallel{})
	require.NoError(t, err)
	s, f := newSession(t), folder(t, checkpoint.Options{})
	s.run(both, f, 8)
	state := s.state(strategies.Jit(r))
	require.Regexp(t, `^cpu \S+, PJRT API \d+\.\d+$`, state.Versions()["plugin"])
	var told []checkpoint.Difference
	resume := f.Resume(checkpoint.Options{Changed: func(d checkpoint.Difference) error { told = append(told, d); return nil }})
	for _, state := range []*managed.State{state, s.state(both)} {
		_, err = s.training.Run(t.Context(), state, s.set.Batches(16), loop.Until(loop.Steps(8)), resume)
		require.NoError(t, err)
		require.Equal(t, []checkpoint.Difference{{What: "devices", Saved: "2", Now: "1"}}, told)
	}
	t.Log("F11: saved on 2 devices, resumed on 1: reported to Changed and in the log; on 2: nothing")
}
