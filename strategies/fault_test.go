package strategies_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// F41: each use of a strategy after its runtime's Close returns an error.
func TestF41_useAfterClose(t *testing.T) {
	count := 0
	for name, devices := range map[string]int{"jit": 1, "eager": 1, "data_parallel": 2} {
		r := plugintest.Devices(t, devices)
		s, err := strategies.Parse(name, r)
		require.NoError(t, err)
		shape := shapes.Make(dtypes.Float32, 2)
		step := strategies.Step{
			Name: "add", Batch: []strategies.Input{{Name: "x", Shape: shape}},
			Build: func(g *graph.Graph, batch []*graph.Node) strategies.Built {
				a := graph.Parameter(g, "a", shape)
				return strategies.Built{State: []strategies.Slot{{Parameter: a, New: graph.Add(a, batch[0])}}}
			}}
		p, err := s.Compile(step)
		require.NoError(t, err)
		b := put(t, s, 1, 2)
		require.NoError(t, r.Close())
		for call, f := range map[string]func() error{
			"put":   func() error { _, err := s.Put("v", tensors.FromValue([]float32{1, 2})); return err },
			"fetch": func() error { _, err := s.Fetch(b); return err },
			"free":  func() error { return s.Free(b) },
			"start": func() error {
				_, _, _, err := p.Start([]compute.Buffer{b}, []data.Batch{{Fields: []data.Field{data.X([]float32{1, 2}, 2)}}})
				return err
			},
		} {
			err := f()
			require.ErrorIs(t, err, xla.ErrClosed, "%s: %s", name, call)
			count++
		}
		if _, err = s.Compile(step); name != "eager" { // eager compiles nothing ahead
			require.ErrorIs(t, err, xla.ErrClosed)
			count++
		}
	}
	t.Logf("F41: %d calls after Close: ErrClosed each", count)
}

// Each strategy's errors have its own name, also where strategies share the code.
func TestErrorsNameTheStrategy(t *testing.T) {
	r := plugintest.Devices(t, 2)
	for _, name := range []string{"jit", "eager", "data_parallel"} {
		s, err := strategies.Parse(name, r)
		require.NoError(t, err)
		_, err = s.Fetch(nil)
		require.EqualError(t, err, "strategies: "+name+": fetch: there is no value (nil)")
		require.ErrorContains(t, s.FetchInto(nil, nil), "strategies: "+name+": fetch into 0 bytes: ")
	}
}

// A runtime that is nil is an error at the first use, or where a strategy is made that can give one.
func TestNilRuntime(t *testing.T) {
	const none = "the runtime is nil: open one with xla.Open"
	_, err := strategies.DataParallel(nil, strategies.Parallel{})
	require.EqualError(t, err, "strategies: data_parallel: "+none)
	for _, s := range []strategies.Strategy{strategies.Jit(nil), strategies.Eager(nil)} {
		_, err := s.Batch(data.Batch{})
		require.EqualError(t, err, "strategies: "+s.String()+": "+none)
		_, err = s.Compile(strategies.Step{})
		require.EqualError(t, err, "strategies: "+s.String()+": "+none)
		_, err = s.Put("v", tensors.FromValue([]float32{1}))
		require.EqualError(t, err, "strategies: "+s.String()+": "+none)
	}
}

// Errors of Batch have the package's name, once, whatever they come from.
func TestErrorsOfBatch(t *testing.T) {
	uneven := data.Batch{Fields: []data.Field{data.X([]float32{1, 2}, 2), data.Y([]float32{1, 2, 3}, 3)}}
	for name, devices := range map[string]int{"jit": 1, "eager": 1, "data_parallel": 2} {
		s, err := strategies.Parse(name, plugintest.Devices(t, devices))
		require.NoError(t, err)
		for _, b := range []data.Batch{uneven, {Size: 7, Fields: uneven.Fields[:1]}} {
			_, err = s.Batch(b)
			require.ErrorContains(t, err, "strategies: ")
			require.NotContains(t, err.Error(), "data: ")
		}
	}
}
