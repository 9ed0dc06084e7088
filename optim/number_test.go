package optim

import (
	"math"
	"testing"

	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

// Each operation has the same result on the host and in a graph, also with one operand of each kind.
func TestNumber(t *testing.T) {
	backend, err := gobackend.New("")
	require.NoError(t, err)
	defer backend.Finalize()
	for name, row := range map[string]struct {
		f    func(a, b number) number
		want float64
	}{
		"plus":        {number.plus, 9.5},
		"minus":       {number.minus, 4.5},
		"times":       {number.times, 17.5},
		"over":        {number.over, 2.8},
		"power":       {number.power, math.Pow(7, 2.5)},
		"at most":     {number.atMost, 2.5},
		"at least":    {number.atLeast, 7},
		"whole":       {number.whole, 3},
		"cosine":      {func(a, b number) number { return a.plus(b).cosine() }, math.Cos(9.5)},
		"where below": {func(a, b number) number { return a.whereBelow(b, constant(1), b) }, 2.5},
	} {
		const a, b = 7, 2.5
		require.InDelta(t, row.want, row.f(constant(a), constant(b)).host, 1e-12, name)
		for kinds, of := range map[string]func(x, y *graph.Node) (number, number){
			"two nodes":   func(x, y *graph.Node) (number, number) { return number{node: x}, number{node: y} },
			"node second": func(_, y *graph.Node) (number, number) { return constant(a), number{node: y} },
			"node first":  func(x, _ *graph.Node) (number, number) { return number{node: x}, constant(b) },
		} {
			got, err := graph.CallOnce(backend, func(x, y *graph.Node) *graph.Node {
				m, n := of(x, y)
				return row.f(m, n).like(x)
			}, float64(a), float64(b))
			require.NoError(t, err)
			require.InDelta(t, row.want, got.Value(), 1e-12, "%s, %s", name, kinds)
		}
	}
}
