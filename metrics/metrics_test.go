package metrics_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/xla"
)

// platforms runs a test on the CPU plugin (`make setup` installs it; without it the tests fail) and on GoMLX's backend
// in Go.
func platforms(t *testing.T, test func(t *testing.T, r *xla.Runtime)) {
	for name, open := range plugintest.Platforms {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// batch has the arguments of an update; weights may be nil.
type batch struct {
	weights any
	inputs  []any
}

// gauge runs a metric with its accumulators as tensors. It keeps its programs, one per shape of batch.
type gauge struct {
	initial, merge, reduce, compute *graph.Exec
	update                          map[bool]*graph.Exec
	names                           []string
}

func newGauge(t require.TestingT, r *xla.Runtime, m metrics.Metric) *gauge {
	exec := func(f func([]*graph.Node) []*graph.Node) *graph.Exec {
		e, err := graph.NewExec(r, f)
		require.NoError(t, err)
		return e
	}
	n := len(m.Accumulators())
	initial, err := graph.NewExec(r, func(g *graph.Graph) []*graph.Node { return metrics.Initial(m, g) })
	require.NoError(t, err)
	g := &gauge{
		initial: initial,
		update: map[bool]*graph.Exec{
			false: exec(func(in []*graph.Node) []*graph.Node { return m.Update(in[:n], nil, in[n:]...) }),
			true:  exec(func(in []*graph.Node) []*graph.Node { return m.Update(in[:n], in[n], in[n+1:]...) }),
		},
		merge:  exec(func(in []*graph.Node) []*graph.Node { return m.Merge(in[:n], in[n:]) }),
		reduce: exec(func(in []*graph.Node) []*graph.Node { return metrics.Reduce(m, in[:n], in[n:]) }),
	}
	g.compute = exec(func(in []*graph.Node) []*graph.Node {
		g.names = nil
		var nodes []*graph.Node
		for _, v := range m.Compute(in) {
			g.names = append(g.names, v.Name)
			nodes = append(nodes, v.Node)
		}
		return nodes
	})
	return g
}

type state []*tensors.Tensor

func (s state) and(more ...any) []any {
	all := make([]any, 0, len(s)+len(more))
	for _, t := range s {
		all = append(all, t)
	}
	return append(all, more...)
}

func (g *gauge) empty(t require.TestingT) state {
	s, err := g.initial.Call()
	require.NoError(t, err)
	return s
}

// add updates with some batches in turn.
func (g *gauge) add(t require.TestingT, s state, batches ...batch) state {
	for _, b := range batches {
		in := s.and()
		if b.weights != nil {
			in = append(in, b.weights)
		}
		var err error
		s, err = g.update[b.weights != nil].Call(append(in, b.inputs...)...)
		require.NoError(t, err)
	}
	return s
}

func join(t require.TestingT, how *graph.Exec, a, b state) state {
	s, err := how.Call(a.and(b.and()...)...)
	require.NoError(t, err)
	return s
}

// values returns the elements of each value by name.
func (g *gauge) values(t require.TestingT, s state) map[string][]float64 {
	out, err := g.compute.Call(s.and()...)
	require.NoError(t, err)
	all := map[string][]float64{}
	for i, v := range out {
		all[g.names[i]], err = tensors.CopyFlatData[float64](v)
		require.NoError(t, err)
	}
	return all
}

// measure returns a metric's values for one batch, in one program.
func measure(r *xla.Runtime, m metrics.Metric, b batch) ([]float64, error) {
	in := b.inputs
	if b.weights != nil {
		in = append([]any{b.weights}, in...)
	}
	exec, err := graph.NewExec(r, func(in []*graph.Node) *graph.Node {
		var weights *graph.Node
		if b.weights != nil {
			weights, in = in[0], in[1:]
		}
		var all []*graph.Node
		for _, v := range m.Compute(m.Update(metrics.Initial(m, in[0].Graph()), weights, in...)) {
			all = append(all, graph.Reshape(v.Node, -1))
		}
		return graph.Concatenate(all, 0)
	})
	if err != nil {
		return nil, err
	}
	defer exec.Finalize()
	v, err := exec.Call1(in...)
	if err != nil {
		return nil, err
	}
	return tensors.CopyFlatData[float64](v)
}

// together makes a metric from a collection, whose inputs are the named outputs. Many metrics are then one program,
// which compiles much faster.
type together struct {
	metrics.Collection
	outputs []string
}

func (c together) Update(acc []*graph.Node, weights *graph.Node, inputs ...*graph.Node) []*graph.Node {
	outputs := map[string]*graph.Node{"weights": weights}
	for i, name := range c.outputs {
		outputs[name] = inputs[i]
	}
	return c.Collection.Update(acc, outputs)
}

// near compares numbers, with NaN equal to NaN.
func near(t require.TestingT, want, got []float64, tolerance float64, message ...any) {
	require.Len(t, got, len(want), message...)
	for i := range want {
		if want[i] != got[i] { // infinities
			require.InDelta(t, want[i], got[i], tolerance, message...)
		}
	}
}
