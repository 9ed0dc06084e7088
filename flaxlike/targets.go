package flaxlike

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/internal/layering"
	"github.com/lazo-ml/lazo/internal/outputs"
	"github.com/lazo-ml/lazo/managed"
)

func (m *Model) answers(b *managed.Builder) map[string]*graph.Node {
	out := m.outputs(b)
	m.seen.mu.Lock()
	fields := m.seen.labels
	m.seen.mu.Unlock()
	for name, v := range out {
		of := m.set.preparation.Targets(fields[name])
		if of == nil {
			continue
		}
		wide := dtypes.Float32
		if v.DType() == dtypes.Float64 {
			wide = dtypes.Float64
		}
		out[name] = graph.ConvertDType(restored(v, of, fields[name]), wide)
		layering.HandOn(v, out[name])
	}
	return out
}

// restored is float64: a difference of labels far from 0 would lose its digits.
func restored(v *graph.Node, of []tables.Target, field string) *graph.Node {
	if of == nil {
		return v
	}
	if n := len(of); n > 1 && (v.Rank() < 2 || outputs.Classes(v) != n) {
		panic(fmt.Errorf("field %q has %d columns of scaled labels, and the output is %s: expected a number for each column, to be answered in the units of the labels\n"+
			"  end the network with nn.Dense{Units: %d}, or fit the preparation with tables.Labels without Scale and Log", field, n, v.Shape(), n))
	}
	shift, scale := make([]float64, len(of)), make([]float64, len(of))
	for i, t := range of {
		shift[i], scale[i] = t.Shift, t.Scale
	}
	v = graph.ConvertDType(v, dtypes.Float64)
	each := func(numbers []float64) *graph.Node {
		if len(numbers) == 1 {
			return graph.Scalar(v.Graph(), dtypes.Float64, numbers[0])
		}
		return graph.BroadcastToShape(graph.ExpandLeftToRank(graph.Const(v.Graph(), numbers), v.Rank()), v.Shape())
	}
	v = graph.Add(graph.Mul(v, each(scale)), each(shift))
	if of[0].Log {
		v = graph.Expm1(v)
	}
	return v
}
