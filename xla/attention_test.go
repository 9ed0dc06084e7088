package xla_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/attention"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// The heads that cuDNN accepts depend on the device.
func TestWidestHead(t *testing.T) {
	for capability, want := range map[any]int{"7.5": 0, "8.0": 128, "8.9": 128, "9.0": 256, "10.3": 128, "12.0": 128, "gfx942": 0, "": 0, nil: 0} {
		assert.Equal(t, want, xla.WidestHead(capability), "compute capability %v", capability)
	}
}

// Compiled attention is cuDNN's where the devices have it: the CPU, configured so, asks for the function. A program
// that was only lowered is for any device.
func TestAttentionOfDevices(t *testing.T) {
	runtime := plugintest.CPU(t)
	build := func(kind dtypes.DType) func(g *graph.Graph) xla.Built {
		return func(g *graph.Graph) xla.Built {
			x := graph.Parameter(g, "x", shapes.Make(kind, 2, 16, 4, 8))
			output, _ := attention.Core(x, x, x, attention.LayoutBSHD, attention.CoreOptions{UseCausalMask: true})
			return xla.Built{Outputs: []*graph.Node{output}}
		}
	}
	compile := func(kind dtypes.DType) error {
		p, err := runtime.Compile("attention", build(kind))
		if err == nil {
			require.NoError(t, p.Close())
		}
		return err
	}
	require.NoError(t, compile(dtypes.BFloat16))
	xla.SetWidestHead(runtime, 128)
	require.ErrorContains(t, compile(dtypes.BFloat16), "__cudnn$fmhaSoftmax")
	require.NoError(t, compile(dtypes.Float32))
	lowered, err := runtime.Lower("attention", build(dtypes.BFloat16))
	require.NoError(t, err)
	require.NotContains(t, lowered.Text(), "custom_call")
}
