package xla_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

func TestOpenInstalled(t *testing.T) {
	start := time.Now()
	runtime := plugintest.Uncached(t)
	t.Logf("Open of the installed CPU plugin took %v", time.Since(start))
	plugin := runtime.Plugin()
	assert.Equal(t, xla.CPU, plugin.Kind)
	assert.Equal(t, "lazo install", plugin.Source)
	assert.True(t, filepath.IsAbs(plugin.Path))
	assert.NotEmpty(t, plugin.Version)
	assert.True(t, strings.HasPrefix(plugin.API, "0."), plugin.API)
	assert.False(t, runtime.HasSharedBuffers())
	assert.Len(t, runtime.Devices(), runtime.NumDevices())
	assert.Contains(t, runtime.Description(), plugin.Path)
	assert.Equal(t, []float32{2, 4, 6, 8}, double(t, runtime, 0, []float32{1, 2, 3, 4}))
}

func TestDeviceCount(t *testing.T) {
	for _, devices := range []int{1, 2, 8} {
		runtime := plugintest.Uncached(t, xla.ClientOption("cpu_device_count", devices))
		assert.Equal(t, devices, runtime.NumDevices())
		last := compute.DeviceNum(devices - 1)
		assert.Equal(t, []float32{2, 4}, double(t, runtime, last, []float32{1, 2}))
	}
}

// TestR22_eachFlagsAreProbedOnce: also for an installed plugin.
func TestR22_eachFlagsAreProbedOnce(t *testing.T) {
	do := task{Root: filepath.Dir(strings.Split(plugintest.Uncached(t).Plugin().Path, "/pjrt-")[0])}
	emptyHome(t)
	open := func(flags string) {
		got := do.inChild(t, "", "XLA_FLAGS="+flags)
		require.Zero(t, got.code, got.stderr)
		require.Empty(t, got.Error)
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	platforms := func(rename bool) (names []string) {
		records, err := filepath.Glob(filepath.Join(cache, "lazo", "probe", "*"))
		require.NoError(t, err)
		require.Len(t, records, 1)
		data, err := os.ReadFile(records[0])
		require.NoError(t, err)
		for range strings.Count(string(data), `"Platform":"cpu"`) {
			names = append(names, "probed")
		}
		for range strings.Count(string(data), `"Platform":"kept"`) {
			names = append(names, "kept")
		}
		if rename {
			require.NoError(t, os.WriteFile(records[0], bytes.ReplaceAll(data, []byte(`"Platform":"cpu"`), []byte(`"Platform":"kept"`)), 0o600))
		}
		return names
	}
	open("")
	require.Equal(t, []string{"probed"}, platforms(true))
	open("")
	require.Equal(t, []string{"kept"}, platforms(false), "no second probe")
	open(fastMath)
	require.Equal(t, []string{"probed", "kept"}, platforms(true), "other flags are probed")
	open(fastMath)
	require.Equal(t, []string{"kept", "kept"}, platforms(false))
}

func TestOpenGo(t *testing.T) {
	runtime := plugintest.Go(t)
	assert.Contains(t, runtime.Description(), "pure-Go")
	assert.Len(t, runtime.Devices(), 1)
	main := runtime.Builder("waves").Main()
	x, err := main.Parameter("x", shapes.Make(dtypes.Float32, 4), nil)
	require.NoError(t, err)
	_, err = main.FFT(x, compute.FFTForwardReal, []int{4})
	require.ErrorIs(t, xla.WrapError(err), xla.ErrUnimplemented)
}

// Unused words of the random state are kept, not overwritten by uninitialized memory.
func TestOpenGo_randomStateIsDefined(t *testing.T) {
	runtime := plugintest.Go(t)
	exec, err := graph.NewExec(runtime, func(state *graph.Node) []*graph.Node {
		next, values := graph.RNGStateSplit(state)
		return []*graph.Node{next, values, graph.Identity(state)} // state is still needed: next has separate memory
	})
	require.NoError(t, err)
	defer exec.Finalize()
	var first []uint64
	for i := range uint64(50) {
		outputs, err := exec.Call([]uint64{1, 2, i})
		require.NoError(t, err)
		next := tensors.MustCopyFlatData[uint64](outputs[0])
		if first == nil {
			first = next
		}
		require.Equal(t, []uint64{first[0], first[1], i}, next)
		for _, output := range outputs {
			output.MustFinalizeAll()
		}
	}
}

func ExampleOpen() {
	runtime, err := xla.Open(context.Background(), xla.CPU, xla.ClientOption("cpu_device_count", 2))
	if err != nil {
		fmt.Println(err) // says where the plugin was looked for and how to install it
		return
	}
	defer runtime.Close()
	fmt.Println(runtime.Plugin().Kind, runtime.NumDevices())
	// Output: cpu 2
}
