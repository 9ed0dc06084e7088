package selection_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/selection"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/serve"
)

// An ensemble has the means of probabilities, which are no probabilities of mean logits, and of numbers; so are its
// classes, and what is served.
func TestEnsemble(t *testing.T) {
	set := must.M1(data.New(data.X([]float32{1, 2, 3, 4, 5, 6}, 3, 2), data.Named("a", []int32{0, 1, 0}, 3), data.Named("b", []float32{1, 2, 3}, 3, 1)))
	network := func(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
		return map[string]*graph.Node{"a": nn.Dense{Units: 2}.Apply(scope.In("a"), input("x")), "b": nn.Dense{Units: 1}.Apply(scope.In("b"), input("x")),
			"c": nn.Dense{Units: 1}.Apply(scope.In("c"), input("x"))}
	}
	var models []*flaxlike.Model
	for seed := range int64(3) {
		m := newModel(t, flaxlike.Functional(network), flaxlike.WithSeed(seed), flaxlike.WithLoss(flaxlike.Loss{Name: sparse, Output: "a"},
			flaxlike.Loss{Name: "mse", Output: "b"}, flaxlike.Loss{Name: "binary_crossentropy", Output: "c", Label: "a"}))
		require.NoError(t, m.Init(t.Context(), first(t, set, 1)))
		models = append(models, m)
	}
	e, err := selection.NewEnsemble(models...)
	require.NoError(t, err)
	got, err := e.Predict(t.Context(), set)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, got.Outputs())
	want := map[string][]float64{"a": make([]float64, 6), "b": make([]float64, 3), "c": make([]float64, 3)}
	for _, m := range models {
		p := must.M1(m.Predict(t.Context(), set))
		for name, a := range map[string]data.Array{"a": must.M1(p.Probabilities("a")), "b": output(t, p, "b"), "c": must.M1(p.Probabilities("c"))} {
			for i, v := range a.Flat.([]float32) {
				want[name][i] += float64(v) / 3
			}
		}
	}
	for _, name := range got.Outputs() {
		require.InDeltaSlice(t, want[name], output(t, got, name).Flat, 1e-6, name)
		require.Equal(t, 3, output(t, got, name).Len())
	}
	for _, name := range []string{"a", "c"} {
		require.Equal(t, output(t, got, name), must.M1(got.Probabilities(name)))
	}
	_, err = got.Probabilities("b")
	require.ErrorIs(t, err, flaxlike.ErrNoProbabilities)
	a, c := must.M1(got.Classes("a")).Flat.([]int32), must.M1(got.WithThresholds(0.25).Classes("c")).Flat.([]int32)
	for i := range 3 {
		require.Equal(t, want["a"][2*i+1] > want["a"][2*i], a[i] == 1)
		require.Equal(t, want["c"][i] > 0.25, c[i] == 1)
	}

	example := data.Batch{Fields: []data.Field{data.X([]float32{1, 2}, 1, 2)}}
	b, err := serve.New(e, example, serve.Batching{})
	require.NoError(t, err)
	defer b.Close()
	answer, err := b.Answer(t.Context(), example)
	require.NoError(t, err)
	for served, name := range map[string]string{"a_probability": "a", "b": "b", "c_probability": "c"} {
		require.InDeltaSlice(t, output(t, got, name).Slice(0, 1).Flat, answer[served].Flat, 1e-6)
	}
	require.Len(t, answer, 5, "and two classes")
}

func TestEnsemble_refuses(t *testing.T) {
	made := func(n nn.Layer, width int, options ...flaxlike.Option) *flaxlike.Model {
		m := newModel(t, n, options...)
		require.NoError(t, m.Init(t.Context(), data.Batch{Fields: []data.Field{data.X(make([]float32, width), 1, width)}}))
		return m
	}
	one := made(nn.Dense{Units: 2}, 3, flaxlike.WithLoss(sparse), flaxlike.WithClasses([]string{"a", "b"}))
	for want, models := range map[string][]*flaxlike.Model{
		"selection: new ensemble: there are no models": {},
		"model 2 of 2 is nil":                          {one, nil},
		"model 2 of 2 appears twice":                   {one, one},
		"model 1 of 1 has not seen a batch":            {newModel(t, nn.Dense{Units: 1})},
		"model 2 has the inputs [{x float32 [2]}], and the first one [{x float32 [3]}]":    {one, made(nn.Dense{Units: 2}, 2, flaxlike.WithLoss(sparse))},
		"model 2 has the outputs map[preds:numbers], and the first one map[preds:classes]": {one, made(nn.Dense{Units: 2}, 3, flaxlike.WithLoss("mse"))},
		`model 2 has the classes map["":["b" "a"]], and the first one map["":["a" "b"]]`:   {one, made(nn.Dense{Units: 2}, 3, flaxlike.WithLoss(sparse), flaxlike.WithClasses([]string{"b", "a"}))},
		"no loss by name says whether its numbers are logits":                              {made(nn.Dense{Units: 2}, 3)},
	} {
		_, err := selection.NewEnsemble(models...)
		require.ErrorContains(t, err, want)
	}
	e, err := selection.NewEnsemble(made(nn.Dense{Units: 2}, 3, flaxlike.WithLoss(sparse)), made(nn.Dense{Units: 3}, 3, flaxlike.WithLoss(sparse)))
	require.NoError(t, err)
	_, err = e.Predict(t.Context(), must.M1(data.New(data.X(make([]float32, 3), 1, 3))))
	require.ErrorContains(t, err, `selection: predict: model 2 of the ensemble: output "preds" is float32[1 3], and that of the first model float32[1 2]`)
}
