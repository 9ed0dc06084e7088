package flaxlike_test

import (
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

// Weights by which no example counts, and those of classes that no example has, are an error before the first step, and
// the model is as it was.
func TestWeights_byWhichNothingCounts(t *testing.T) {
	labels := []int32{0, 1, 1, 0, 1, 0, 1, 1}
	set := func(weights ...float32) *data.Set {
		fields := []data.Field{data.X(make([]float32, 16), 8, 2), data.Y(labels, 8)}
		if len(weights) > 0 {
			fields = append(fields, data.Named("weight", weights, 8))
		}
		return must.M1(data.New(fields...))
	}
	of := func(weights map[int]float64, more ...flaxlike.Option) []flaxlike.Option {
		return append(more, flaxlike.WithLoss(sparse), flaxlike.WithClassWeights(weights), flaxlike.WithBatchSize(4))
	}
	sample := flaxlike.WithSampleWeights("weight")
	for _, row := range []struct {
		name    string
		set     *data.Set
		options []flaxlike.Option
		want    string
	}{
		{"all classes 0", set(), of(map[int]float64{0: 0, 1: 0, 2: 0}), "before the first step: WithClassWeights: all 3 classes of the loss \"loss\" weigh 0"},
		{"all that occur 0", set(), of(map[int]float64{0: 0, 1: 0}), "WithClassWeights: all classes that the set has, [0 1] in field \"y\", weigh 0, so no example would count"},
		{"a class that none has", set(), of(map[int]float64{0: 2, 2: 3}), "before the first step: WithClassWeights names class 2, which no counted example of the set has: field \"y\" has the classes [0 1]"},
		{"a class of examples that do not count", set(1, 0, 0, 1, 0, 1, 0, 0), of(map[int]float64{1: 3}, sample), "WithClassWeights names class 1, which no counted example of the set has: field \"y\" has the classes [0]"},
		{"sample weights", set(0, 0, 0, 0, 0, 0, 0, 0), []flaxlike.Option{flaxlike.WithLoss(sparse), sample}, "field \"weight\": the sample weights of all 8 examples in the set are 0"},
		{"some", set(), of(map[int]float64{0: 0, 1: 2}), ""},
		{"some sample weights", set(0, 0, 0, 0, 0, 0, 0, 1), of(map[int]float64{1: 2}, sample), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newModel(t, nn.Dense{Units: 3}, row.options...)
			_, err := m.Fit(t.Context(), row.set, quiet(flaxlike.Fit{Epochs: 2}))
			if row.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.want)
			require.NotContains(t, err.Error(), "step 1")
		})
	}
	m := newModel(t, nn.Dense{Units: 3}, flaxlike.WithLoss(sparse), sample)
	_, err := m.Evaluate(t.Context(), set(0, 0, 0, 0, 0, 0, 0, 0))
	require.ErrorContains(t, err, "the sample weights of all 8 examples in the set are 0")
	_, err = m.Fit(t.Context(), set(1, 1, 1, 1, 1, 1, 1, 1), quiet(flaxlike.Fit{Validation: set(0, 0, 0, 0, 0, 0, 0, 0)}))
	require.ErrorContains(t, err, `before the first step: test "val": field "weight": the sample weights of all 8`)
	few := newModel(t, nn.Dense{Units: 3}, of(map[int]float64{0: 2, 1: 3})...)
	ones := must.M1(data.New(data.X(make([]float32, 16), 8, 2), data.Y([]int32{1, 1, 1, 1, 1, 1, 1, 0}, 8)))
	_, err = few.Fit(t.Context(), ones, quiet(flaxlike.Fit{OverfitBatches: 1})) // whose examples have not all classes
	require.NoError(t, err)
	_, err = flaxlike.New(t.Context(), nn.Dense{Units: 3}, flaxlike.WithClassWeights(nil))
	require.ErrorContains(t, err, "WithClassWeights: no class is named")
}
