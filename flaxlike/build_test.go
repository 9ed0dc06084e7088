package flaxlike_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

// twoHeads has two inputs and two outputs.
func twoHeads(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
	h := graph.Concatenate([]*graph.Node{input("a"), input("b")}, -1)
	return map[string]*graph.Node{"class": nn.Dense{Units: 3}.Apply(scope.In("class"), h), "size": nn.Dense{Units: 1}.Apply(scope.In("size"), h)}
}

func TestInputsAndOutputsByName(t *testing.T) {
	x := sorted(t, 96).Fields()
	size := make([]float32, 96)
	for i := range size {
		size[i] = float32(i % 5)
	}
	set, err := data.New(data.Field{Name: "a", Array: x[0].Array}, data.Field{Name: "b", Array: x[0].Array},
		data.Field{Name: "class", Array: x[1].Array}, data.Named("size", size, 96))
	require.NoError(t, err)
	m := newModel(t, flaxlike.Functional(twoHeads),
		flaxlike.WithLoss(flaxlike.Loss{Name: sparse, Output: "class"}, flaxlike.Loss{Name: "mse", Output: "size", Weight: 0.5}),
		flaxlike.WithMetrics(flaxlike.Metric{Name: "accuracy", Output: "class"}, flaxlike.Metric{Name: "mse", Output: "size"}), flaxlike.WithLearningRate(0.03))
	h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 40, Validation: set}))
	require.NoError(t, err)
	found, err := m.Evaluate(t.Context(), set)
	require.NoError(t, err)
	require.InDelta(t, found["class_loss"]+0.5*found["size_loss"], found["loss"], 1e-6, "the sum")
	require.InDelta(t, found["size_mse"], found["size_loss"], 1e-5, "before its weight")
	require.InDelta(t, series(t, h, "val_loss")[39], found["loss"], 1e-6)
	require.Greater(t, found["class_accuracy"], 0.9)
	out, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	require.Equal(t, []int{96, 3}, output(t, out, "class").Dims)
	require.Equal(t, []int{96, 1}, output(t, out, "size").Dims)
}

// The fields of a model with a preparation come of its rules: the error names the rule, not the set.
func TestField_ofAPreparation(t *testing.T) {
	table := must.M1(data.New(data.Named("a", []float32{1, 2, 3, 4}, 4), data.Named("y", []float32{1, 2, 3, 4}, 4)))
	p := must.M1(tables.Fit(table, tables.Numbers{Columns: []string{"a"}}))
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithPreparation(p))
	_, err := m.Fit(t.Context(), table, quiet(flaxlike.Fit{}))
	require.ErrorContains(t, err, "the batch has no field \"y\"")
	require.ErrorContains(t, err, "the preparation makes the fields: fit it with tables.Labels for labels, whose Field is \"y\", or with another rule of this Field")
}
