package register

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// S64
func TestRegister(t *testing.T) {
	plugintest.CPU(t)
	for config, kind := range map[string]string{"lazo:cpu": xla.CPU, "lazo": xla.CPU, "lazo:go": xla.Go} {
		t.Run(config, func(t *testing.T) {
			t.Setenv(compute.ConfigEnvVar, config)
			backend, err := compute.New()
			require.NoError(t, err)
			defer backend.Finalize()
			runtime, ok := backend.(*xla.Runtime)
			require.True(t, ok, "%T", backend)
			require.Equal(t, kind, runtime.Plugin().Kind)
			square, err := graph.CallOnce(backend, func(x *graph.Node) *graph.Node { return graph.Mul(x, x) }, []float32{1, 2, 3})
			require.NoError(t, err)
			require.Equal(t, []float32{1, 4, 9}, square.Value())
		})
	}
}

func TestRegister_unknownPlugin(t *testing.T) {
	t.Setenv(compute.ConfigEnvVar, "lazo:nosuch")
	backend, err := compute.New()
	require.ErrorIs(t, err, xla.ErrPluginNotFound)
	require.Nil(t, backend)
}
