package flaxlike_test

import (
	"io"
	"math"
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/decision"
	"github.com/lazo-ml/lazo/nn"
)

// Other outputs, as means, are taken as they are, with the model's names, and without its calibration and thresholds.
func TestPrediction_withOutputs(t *testing.T) {
	set := must.M1(data.New(data.X([]float32{1, -1, 3, -3}, 2, 2)))
	m := newModel(t, nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node { return x }), flaxlike.WithLoss("binary_crossentropy"),
		flaxlike.WithClasses([]string{"left", "right"}))
	require.Empty(t, m.Summary().Outputs)
	must.M1(m.Predict(t.Context(), set))
	require.NoError(t, m.SetThresholds("", 0.9))
	require.Equal(t, map[string]string{"preds": "multi-label"}, m.Summary().Outputs)
	p := must.M1(m.Predict(t.Context(), set))
	mean := data.Array{Flat: []float32{0.4, 0.6, 1, 0}, Dims: []int{2, 2}}
	q := must.M1(p.WithOutputs(map[string]data.Array{"preds": mean}))
	require.Equal(t, mean, must.M1(q.Probabilities()))
	require.Equal(t, [][]string{{"right"}, {"left"}}, must.M1(q.Labels()))
	require.Equal(t, [][]string{{}, {"left"}}, must.M1(p.Labels()))
	for want, outputs := range map[string]map[string]data.Array{
		`flaxlike: with outputs: output "p": unknown name; the prediction has ["preds"]`: {"p": mean},
		`it has 3, expected probabilities, 0 to 1`:                                       {"preds": {Flat: []float32{1, 3}, Dims: []int{2, 1}}},
		`it has dims []`:      {"preds": {Flat: []float32{1}}},
		`example 0 has a NaN`: {"preds": {Flat: []float64{math.NaN()}, Dims: []int{1}}},
	} {
		_, err := p.WithOutputs(outputs)
		require.ErrorContains(t, err, want)
	}
}

// The answers for chosen examples are those of Predict, with the same labels.
func TestPrediction_gather(t *testing.T) {
	set := must.M1(data.New(data.X([]float32{0, 3, 1, 2, -1, -2, -3, -1, 4}, 3, 3)))
	m := logits(t, sparse)
	all := must.M1(m.Predict(t.Context(), set))
	some := must.M1(all.Gather([]int{2, 0, 2}))
	require.Equal(t, 3, some.Len())
	require.Equal(t, []int32{2, 1, 2}, must.M1(some.Classes()).Flat)
	require.Equal(t, []int32{1, 0, 2}, must.M1(all.Classes()).Flat)
	for _, row := range []int{-1, 3} {
		_, err := all.Gather([]int{0, row})
		require.ErrorContains(t, err, "of a prediction of 3 examples")
	}
}

// A calibration changes probabilities and no class of the likeliest, and lowers the calibration error; it is in the
// file; and it is not used once the weights have changed.
func TestCalibrate_isKept(t *testing.T) {
	set := tooSure(t, 120)
	m := newModel(t, nn.Sequential{nn.Dense{Units: 3}}, flaxlike.WithLoss(sparse), flaxlike.WithLearningRate(0.05))
	_, err := m.Fit(t.Context(), set, flaxlike.Fit{Epochs: 3, Output: io.Discard})
	require.NoError(t, err)
	plain, err := probabilitiesOf(t, m, set)
	require.NoError(t, err)
	before, err := classesOf(t, m, set)
	require.NoError(t, err)
	found, err := m.Calibrate(t.Context(), set)
	require.NoError(t, err)
	calibrated, err := probabilitiesOf(t, m, set)
	require.NoError(t, err)
	require.NotEqual(t, plain, calibrated)
	after, err := classesOf(t, m, set)
	require.NoError(t, err)
	require.Equal(t, before, after)
	step, err := m.Answer(t.Context(), first(t, set, 32))
	require.NoError(t, err)
	require.Equal(t, calibrated.Flat.([]float32)[:96], step["preds_probability"].Flat)

	path := filepath.Join(t.TempDir(), "model.safetensors")
	require.NoError(t, m.Save(path))
	description, err := flaxlike.Describe(path)
	require.NoError(t, err)
	require.Equal(t, found, description.Calibrations)
	require.Contains(t, description.String(), "calibration  preds: [temperature ")
	opened, err := flaxlike.Open(t.Context(), path, flaxlike.WithStrategy(jit(t)))
	require.NoError(t, err)
	defer opened.Close()
	again, err := probabilitiesOf(t, opened, set)
	require.NoError(t, err)
	require.Equal(t, calibrated, again)

	_, err = opened.Fit(t.Context(), set, flaxlike.Fit{Output: io.Discard})
	require.NoError(t, err)
	const outdated = "flaxlike: probabilities: output \"preds\": its calibration is outdated: the model has changed since\n" +
		"  Calibrate it again, or remove the calibration by SetCalibration(\"preds\"); then predict again"
	_, err = probabilitiesOf(t, opened, set)
	require.EqualError(t, err, outdated)
	require.ErrorIs(t, err, flaxlike.ErrOutdated)
	require.NoError(t, opened.Save(path))
	for _, d := range []flaxlike.Description{opened.Describe(), must.M1(flaxlike.Describe(path))} {
		require.Empty(t, d.Calibrations)
		require.Regexp(t, "outdated +calibration of preds\n", d.String())
	}
	old, err := flaxlike.Open(t.Context(), path, flaxlike.WithStrategy(jit(t)))
	require.NoError(t, err)
	defer old.Close()
	_, err = probabilitiesOf(t, old, set)
	require.EqualError(t, err, outdated, "the file knows")
	require.NoError(t, old.SetCalibration("preds"))
	_, err = probabilitiesOf(t, old, set)
	require.NoError(t, err)
	require.NoError(t, old.SetCalibration("", decision.Calibration{Scale: 0.5}))
	require.Equal(t, 2.0, old.Describe().Calibrations["preds"][0].Temperature())
	_, _, err = old.TrainStep(t.Context(), first(t, set, 32))
	require.NoError(t, err)
	_, err = probabilitiesOf(t, old, set)
	require.EqualError(t, err, outdated, "a step by hand")
	require.NoError(t, old.SetCalibration("", decision.Calibration{Scale: 0.5}))
	require.NoError(t, old.Load(t.Context(), path))
	_, err = probabilitiesOf(t, old, set)
	require.EqualError(t, err, outdated, "other values")
}

// Probabilities come by the output's loss, and what are probabilities already stay: one program has all kinds.
func TestProbabilities(t *testing.T) {
	softmaxed := func(x *graph.Node) *graph.Node { return graph.Softmax(x) }
	sigmoided := func(x *graph.Node) *graph.Node { return graph.Sigmoid(x) }
	nanOfInf := func(x *graph.Node) *graph.Node {
		_ = graph.IsFinite(x) // so that infinite inputs are taken
		return graph.Add(x, graph.MulScalar(x, 0))
	}
	names := []string{"classes", "two", "several", "number", "soft", "sig"}
	losses := []flaxlike.Loss{
		{Name: "sparse_categorical_crossentropy", Output: "classes"}, {Name: "binary_crossentropy", Output: "two"},
		{Name: "binary_focal_crossentropy", Output: "several"}, {Name: "mse", Output: "number"},
	}
	m := newModel(t, asIs(map[string]func(*graph.Node) *graph.Node{"soft": softmaxed, "sig": sigmoided, "two": nanOfInf}, names...), flaxlike.WithLoss(losses...), flaxlike.WithBatchSize(2))
	log := func(p float64) float32 { return float32(math.Log(p)) }
	logit := func(p float64) float32 { return float32(math.Log(p / (1 - p))) }
	fields := []data.Field{
		data.Named("classes", []float32{log(.1) + 50, log(.7) + 50, log(.2) + 50, log(.4) - 90, log(.4) - 90, log(.2) - 90}, 2, 3),
		data.Named("two", []float32{logit(.7), logit(.2)}, 2, 1),
		data.Named("several", []float32{logit(.45), logit(.9), 1000, -1000}, 2, 2),
		data.Named("number", []float32{7, 8}, 2, 1),
		data.Named("soft", []float32{log(.75), log(.25), log(.5), log(.5)}, 2, 2),
		data.Named("sig", []float32{logit(.55), logit(.5)}, 2),
	}
	set, err := data.New(fields...)
	require.NoError(t, err)
	p, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	require.Equal(t, 2, p.Len())
	for name, want := range map[string][]float32{
		"classes": {.1, .7, .2, .4, .4, .2}, "two": {.7, .2}, "several": {.45, .9, 1, 0}, "soft": {.75, .25, .5, .5}, "sig": {.55, .5},
	} {
		got, err := p.Probabilities(name)
		require.NoError(t, err)
		require.InDeltaSlice(t, want, got.Flat, 1e-5, name)
		require.Equal(t, output(t, p, name).Dims, got.Dims)
	}
	for name, want := range map[string]string{"classes": "classes", "two": "binary", "several": "multi-label", "number": "numbers", "soft": "classes", "sig": "binary"} {
		require.Equal(t, want, must.M1(p.Kind(name)), name)
	}
	_, err = p.Probabilities("number")
	require.ErrorIs(t, err, flaxlike.ErrNoProbabilities)
	require.EqualError(t, err, "flaxlike: probabilities: output \"number\": its loss is for numbers, not for classes: no probabilities\n  use Output for the numbers")
	_, err = p.Classes("number")
	require.ErrorContains(t, err, "flaxlike: classes: output \"number\": its loss is for numbers")
	_, err = p.Output()
	require.EqualError(t, err, `flaxlike: output: the model has the outputs ["classes" "number" "several" "sig" "soft" "two"]: give the name of one`)
	_, err = p.Labels("none")
	require.ErrorContains(t, err, `output "none": unknown name; the model has ["classes" `)
	_, err = flaxlike.Prediction{}.Classes()
	require.ErrorContains(t, err, "the prediction is empty")

	for name, want := range map[string]data.Array{
		"classes": {Flat: []int32{1, 0}, Dims: []int{2}}, "two": {Flat: []int32{1, 0}, Dims: []int{2}},
		"several": {Flat: []int32{0, 1, 1, 0}, Dims: []int{2, 2}}, "soft": {Flat: []int32{0, 0}, Dims: []int{2}}, "sig": {Flat: []int32{1, 0}, Dims: []int{2}},
	} {
		require.Equal(t, want, must.M1(p.Classes(name)), name)
	}
	low := p.WithThresholds(0.1)
	require.Equal(t, []int32{1, 1, 1, 0}, must.M1(low.Classes("several")).Flat)
	require.Equal(t, []int32{1, 1}, must.M1(low.Classes("two")).Flat)
	_, err = low.Classes("classes")
	require.ErrorContains(t, err, "thresholds are given, but each example has exactly one of several classes")
	_, err = p.WithThresholds(0.4, 0.95).Classes("sig")
	require.EqualError(t, err, `flaxlike: classes: output "sig": there are 2 thresholds for 1 classes: expected one, or one for each`)
	_, err = p.WithThresholds(2).Classes("sig")
	require.EqualError(t, err, `flaxlike: classes: output "sig": a threshold is 2, expected probabilities, 0 to 1`)
	require.Equal(t, [][]string{{"1"}, {"0"}}, must.M1(p.Labels("several")))

	fields[1].Array.Flat.([]float32)[1] = float32(math.Inf(1))
	p, err = m.Predict(t.Context(), set)
	require.NoError(t, err)
	_, err = p.Classes("two")
	require.EqualError(t, err, `flaxlike: classes: output "two": example 1 has a NaN, which belongs to no class`)
	_, err = p.Probabilities("two")
	require.EqualError(t, err, `flaxlike: probabilities: output "two": example 1 has a NaN, which belongs to no class`)
	require.Len(t, must.M1(p.Labels("soft")), 2)
}
