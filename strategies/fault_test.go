package strategies_test

import (
	"testing"

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

// F41: whatever is asked of a strategy after its runtime's Close is an error that says so.
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
				_, _, _, err := p.Start([]strategies.Buffer{b}, []data.Batch{{Fields: []data.Field{data.X([]float32{1, 2}, 2)}}})
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
	for name, says := range map[string]string{"jit": "jit", "eager": "eager", "data_parallel": "data parallel"} {
		s, err := strategies.Parse(name, r)
		require.NoError(t, err)
		_, err = s.Fetch(nil)
		require.EqualError(t, err, "strategies: "+says+": fetch: there is no value (nil)")
		require.ErrorContains(t, s.FetchInto(nil, nil), "strategies: "+says+": fetch into 0 bytes: ")
	}
}
