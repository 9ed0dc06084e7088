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

func TestParse(t *testing.T) {
	for _, name := range []string{"jit", "jit_donate"} {
		s, err := strategies.Parse(name, nil)
		require.NoError(t, err)
		require.Equal(t, "jit", s.String())
	}
	_, err := strategies.Parse("jitt", nil)
	require.EqualError(t, err, `strategies: unknown strategy "jitt"; known are: jit, jit_donate, data_parallel, data_parallel_donate, eager`)
}
