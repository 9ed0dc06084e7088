package flaxlike_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

// classed has three examples for each of the classes, whose x is 1 at the place of the class among "ant", "bee", "cat".
func classed(t *testing.T, classes ...string) *data.Set {
	t.Helper()
	var x []float32
	var y []int32
	for range 3 {
		for i, name := range classes {
			of := make([]float32, 3)
			of[max(0, slices.Index([]string{"ant", "bee", "cat"}, name))] = 1
			x, y = append(x, of...), append(y, int32(i))
		}
	}
	labels := data.Y(y, len(y))
	labels.Classes = classes
	return must.M1(data.New(data.X(x, len(y), 3), labels))
}

// A set whose classes have other numbers than the model's is evaluated by their names, in the same and another process.
func TestFit_namesClassesByItsSet(t *testing.T) {
	options := []flaxlike.Option{flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy"), flaxlike.WithLearningRate(0.3)}
	m := newModel(t, nn.Dense{Units: 3}, options...)
	must.M1(m.Fit(t.Context(), classed(t, "ant", "bee", "cat"), quiet(flaxlike.Fit{Epochs: 30, Validation: classed(t, "cat", "bee")})))
	path := filepath.Join(t.TempDir(), "m.safetensors")
	require.NoError(t, m.Save(path))
	again := must.M1(opened(t, path))
	same := func(b data.Batch) (data.Batch, error) { return b, nil }
	for _, m := range []*flaxlike.Model{m, again} {
		require.Equal(t, map[string][]string{"": {"ant", "bee", "cat"}}, m.Describe().Classes)
		for _, set := range []*data.Set{classed(t, "ant", "bee", "cat"), classed(t, "bee", "cat"), classed(t, "cat", "ant"), must.M1(classed(t, "cat", "ant").MapBatches(same))} {
			require.EqualValues(t, 1, must.M1(m.Evaluate(t.Context(), set))["accuracy"], set.Classes("y"))
			require.EqualValues(t, 1, must.M1(m.EvaluateBatches(t.Context(), loop.Data[data.Batch](set.Batches(3).All())))["accuracy"], set.Classes("y"))
			if !set.Mapped() {
				require.EqualValues(t, 1, must.M1(m.EvaluateBatches(t.Context(), data.OnDevice(set).Batches(3)))["accuracy"], set.Classes("y"))
			}
		}
		_, err := m.Evaluate(t.Context(), classed(t, "bee", "owl"))
		require.ErrorContains(t, err, `field "y" has the class "owl", and the model has the classes ["ant" "bee" "cat"]: leave its examples out`)
	}
	require.Equal(t, []string{"cat"}, must.M1(must.M1(m.Predict(t.Context(), must.M1(classed(t, "cat").Slice(0, 1)))).Labels())[0])
	_, err := m.Fit(t.Context(), classed(t, "ant", "bee", "cat", "owl"), quiet(flaxlike.Fit{}))
	require.ErrorContains(t, err, `has the class "owl"`)

	mixed := must.M1(classed(t, "cat", "ant").MapBatches(data.OnField("y", func(a data.Array) (data.Array, error) { return data.OneHot(a, 2) })))
	_, err = m.Evaluate(t.Context(), mixed)
	require.ErrorContains(t, err, `its classes are in another order than the model's, and a function of MapBatches has made it float32`)
	_, err = newModel(t, nn.Dense{Units: 4}, options...).Fit(t.Context(), classed(t, "ant", "bee", "cat"), quiet(flaxlike.Fit{}))
	require.ErrorContains(t, err, `field "y" of the set to train on has 3 classes, and the output (Float32)[9, 4] has 4`)
	require.ErrorContains(t, err, `end the network with nn.Dense{Units: 3}, or give New WithClasses`)
}
