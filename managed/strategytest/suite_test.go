package strategytest_test

import (
	"context"
	"flag"
	"fmt"
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed/strategytest"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// With -args -plugin cuda, as scripts/gpu_check.sh has it, TestJit and TestDataParallel/1 run on the device of another
// plugin, and are compared with the CPU's figures.
var plugin = flag.String("plugin", xla.CPU, "the plugin of one device: cpu, cuda, tpu or the path of a library")

func devices(t *testing.T, n int) *xla.Runtime {
	if n > 1 || *plugin == xla.CPU {
		return plugintest.Devices(t, n)
	}
	r, err := xla.Open(context.Background(), *plugin)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func TestJit(t *testing.T) {
	strategytest.Run(t, func(t *testing.T) strategies.Strategy { return strategies.Jit(devices(t, 1)) })
}

// TestS20_goBackend: the suite without any plugin. Eager runs on XLA's plugins alone, and says so.
func TestS20_goBackend(t *testing.T) {
	for name, made := range map[string]func(r *xla.Runtime) (strategies.Strategy, error){
		"jit": func(r *xla.Runtime) (strategies.Strategy, error) { return strategies.Jit(r), nil },
		"data parallel": func(r *xla.Runtime) (strategies.Strategy, error) {
			return strategies.DataParallel(r, strategies.Parallel{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			strategytest.Run(t, func(t *testing.T) strategies.Strategy {
				s, err := made(plugintest.Go(t))
				require.NoError(t, err)
				return s
			})
		})
	}
	_, err := strategies.Eager(plugintest.Go(t)).Compile(strategies.Step{Name: "step"})
	require.ErrorIs(t, err, xla.ErrUnimplemented)
	require.ErrorContains(t, err, `the plugin "go" runs whole graphs only; open one of XLA's, such as "cpu"`)
}

func TestDataParallel(t *testing.T) {
	for _, n := range []int{1, 2, 4, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			strategytest.Run(t, func(t *testing.T) strategies.Strategy { return parallel(t, n, strategies.Parallel{}) })
		})
	}
}

func parallel(t *testing.T, n int, options strategies.Parallel) strategies.Strategy {
	s, err := strategies.DataParallel(devices(t, n), options)
	require.NoError(t, err)
	return s
}

// The state divided over the devices, by rule.
func TestDataParallel_shardedState(t *testing.T) {
	for _, n := range []int{2, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			strategytest.Run(t, func(t *testing.T) strategies.Strategy {
				return parallel(t, n, strategies.Parallel{Shard: strategies.FullyShard(n, 2)})
			})
		})
	}
}

// A mesh of data and model axes: some weights are sharded over one, some over the other.
func TestDataParallel_modelAxis(t *testing.T) {
	rule := func(_ string, shape shapes.Shape) xla.Split {
		switch {
		case shape.Rank() == 2 && shape.Dimensions[1]%2 == 0:
			return xla.Split{nil, {strategies.ModelAxis}}
		case shape.Rank() == 1 && shape.Dimensions[0]%8 == 0:
			return xla.Split{{strategies.ModelAxis, strategies.DataAxis}}
		}
		return nil
	}
	strategytest.Run(t, func(t *testing.T) strategies.Strategy {
		return parallel(t, 8, strategies.Parallel{ModelDevices: 2, Shard: rule})
	})
}
