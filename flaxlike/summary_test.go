package flaxlike_test

import (
	"fmt"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
)

// gated is a custom layer.
func gated(scope *model.Scope, x *graph.Node) *graph.Node {
	return graph.Mul(nn.Dense{Units: 4}.Apply(scope.In("value"), x), graph.Sigmoid(nn.Dense{Units: 4}.Apply(scope.In("gate"), x)))
}

func TestB107_summaryOfLayers(t *testing.T) {
	m := newModel(t, nn.Sequential{nn.Flatten{}, nn.Dense{Units: 4}, nn.BatchNorm{},
		nn.Residual{nn.Dense{Units: 8}, nn.Dense{Units: 4}}, nn.Named{Name: "gate", Layer: nn.Func(gated)}, nn.Dense{Units: 3}}, flaxlike.WithLoss(sparse))
	empty := m.Summary()
	require.Empty(t, empty.Layers, "before the first batch")
	set, err := data.New(data.X(make([]float32, 64*4), 64, 2, 2), data.Y(make([]int32, 64), 64))
	require.NoError(t, err)
	_, err = m.Fit(t.Context(), set, quiet(flaxlike.Fit{}))
	require.NoError(t, err)

	s := m.Summary()
	require.NotEmpty(t, s.Rows)
	require.Equal(t, `layer   kind       output          size
0       Flatten    Float32 [32 4]  0
1       Dense      Float32 [32 4]  20
2       BatchNorm  Float32 [32 4]  20  12 not trainable
3       Residual   Float32 [32 4]  76
3/0     Dense      Float32 [32 8]  40
3/1     Dense      Float32 [32 4]  36
4/gate  gated      Float32 [32 4]  40
5       Dense      Float32 [32 3]  15

total          variables  size  bytes
trainable      14         159   636
not trainable  3          12    48
optimizer      46         336   1408
metric         2          2     16
random         1          3     24
`, s.String())
	var outer int64
	for _, l := range s.Layers {
		if l.Name != "3/0" && l.Name != "3/1" {
			outer += l.Size
		}
	}
	var network int64
	for _, v := range s.Rows {
		if v.Kind <= managed.Fixed {
			network += v.Size
		}
	}
	require.Equal(t, network, outer, "each of the network's numbers is some layer's")
	t.Logf("B107: 8 layers, %d numbers", outer)
}

func TestSummary_ofNamedOutputs(t *testing.T) {
	m := newModel(t, flaxlike.Functional(func(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
		h := nn.Named{Name: "trunk", Layer: nn.Dense{Units: 8}}.Apply(scope, input("x"))
		return map[string]*graph.Node{"b": nn.Dense{Units: 1}.Apply(scope.In("b"), h), "a": h}
	}))
	require.NoError(t, m.Init(t.Context(), first(t, line(t, 32), 32)))
	var got []string
	for _, l := range m.Summary().Layers {
		got = append(got, l.Name+" "+l.Kind+" "+l.Output.String())
	}
	require.Equal(t, []string{"trunk Dense (Float32)[32, 8]", "b Dense (Float32)[32, 1]", "a output (Float32)[32, 8]", "b output (Float32)[32, 1]"}, got)
}

// R35: the rows of a Functional have all of its numbers: layers that it calls directly, and GoMLX's.
func TestR35_summaryOfAFunctional(t *testing.T) {
	m := newModel(t, flaxlike.Functional(func(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
		h := nn.Flatten{}.Apply(scope.In("flat"), input("x"))
		h = nn.Sequential{nn.Dense{Units: 6}, nn.Activation("relu")}.Apply(scope.In("trunk"), h)
		h = gated(scope.In("gate"), layers.Dense(scope.In("gomlx"), h, true, 5))
		return map[string]*graph.Node{"class": nn.Dense{Units: 3}.Apply(scope.In("class"), h)}
	}))
	require.NoError(t, m.Init(t.Context(), first(t, line(t, 32), 32)))
	s := m.Summary()
	var got []string
	var size int64
	for _, l := range s.Layers {
		got = append(got, fmt.Sprint(l.Name, " ", l.Kind, " ", l.Size))
		size += l.Size
	}
	require.Equal(t, []string{"flat Flatten 0", "trunk/0 Dense 12", "trunk/1 Activation 0", "gate/value Dense 24", "gate/gate Dense 24", "class Dense 15",
		"gomlx/dense variables 35", "class output 0"}, got)
	require.EqualValues(t, m.Summary().Total(managed.Parameter).Size, size)
	require.Contains(t, s.String(), "gomlx/dense  variables                   35\n")
}

// Layers that run in one scope have each its own numbers, whatever else lies in that scope, and a layer that is run
// twice has them twice.
func TestKerasSummary_ofLayersInOneScope(t *testing.T) {
	m := newModel(t, flaxlike.Functional(func(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
		h := nn.Dense{Units: 10}.Apply(scope.In("h"), input("x"))
		h = nn.LayerNorm{}.Apply(scope, h)
		both := scope.In("both")
		h = nn.LayerNorm{}.Apply(both, nn.Dense{Units: 10}.Apply(both, h))
		shared := nn.Dense{Units: 10}
		h = shared.Apply(scope.In("shared"), h)
		h = shared.Apply(scope.Shared("shared"), h)
		return map[string]*graph.Node{"o": nn.Dense{Units: 1}.Apply(scope, h)}
	}), flaxlike.WithLoss("mse"))
	require.NoError(t, m.Init(t.Context(), first(t, line(t, 32), 32)))
	var got []string
	for _, l := range m.Summary().Layers {
		got = append(got, fmt.Sprint(l.Name, " ", l.Kind, " ", l.Size))
	}
	require.Equal(t, []string{"h Dense 20", " LayerNorm 20", "both Dense 110", "both LayerNorm 20", "shared Dense 110", "shared Dense 110", " Dense 11", "o output 0"}, got)
}
