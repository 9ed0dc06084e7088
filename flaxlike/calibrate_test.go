package flaxlike_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/decision"
	"github.com/lazo-ml/lazo/metrics/plots"
	"github.com/lazo-ml/lazo/nn"
)

func asFloat32(of []float64) []float32 {
	numbers := make([]float32, len(of))
	for i, v := range of {
		numbers[i] = float32(v)
	}
	return numbers
}

// Temperatures are scipy's, and Platt's scaling is scikit-learn's (testdata/calibration.py).
func TestCalibrate_asThePeers(t *testing.T) {
	var peer struct {
		Temperatures []struct {
			Name                        string
			Classes                     int
			Logits, Rows, Probabilities []float64
			Labels                      []int32
			Temperature                 float64
		}
		Platt []struct {
			Name                  string
			Logits, Probabilities []float64
			Labels                []int32
			Scale, Shift          float64
			Exact                 []float64
		}
		Reliability []struct {
			Bins                  int
			Scores, Shares, Means []float64
			Positive              []bool
			Counts                []int
			Error                 float64
		}
	}
	require.NoError(t, json.Unmarshal(must.M1(os.ReadFile("testdata/calibration.json")), &peer))
	require.Len(t, peer.Temperatures, 6)
	require.Len(t, peer.Platt, 6)
	worst, worstExact, worstScale := 0.0, 0.0, 0.0
	compare := func(name string, want []float64, p data.Array) {
		for i, v := range p.Flat.([]float32) {
			worst = max(worst, math.Abs(want[i]-float64(v)))
			require.InDelta(t, want[i], v, 1e-5, name)
		}
	}
	for _, c := range peer.Temperatures {
		m := logits(t, sparse)
		n := len(c.Labels)
		labels := data.Y(c.Labels, n)
		if c.Rows != nil {
			m, labels = logits(t, "categorical_crossentropy"), data.Y(asFloat32(c.Rows), n, c.Classes)
		}
		set := must.M1(data.New(data.X(asFloat32(c.Logits), n, c.Classes), labels))
		found, err := m.Calibrate(t.Context(), set)
		require.NoError(t, err, c.Name)
		require.Len(t, found["preds"], 1)
		tolerance := 1e-9
		if c.Rows != nil {
			tolerance = 1e-7 // the shares are float32
		}
		require.InEpsilon(t, c.Temperature, found["preds"][0].Temperature(), tolerance, c.Name)
		worstExact = max(worstExact, math.Abs(found["preds"][0].Temperature()/c.Temperature-1))
		require.Equal(t, found, m.Describe().Calibrations)
		p, err := probabilitiesOf(t, m, set)
		require.NoError(t, err)
		compare(c.Name, c.Probabilities, p)
	}
	for _, c := range peer.Platt {
		m, n := logits(t, "binary_crossentropy"), len(c.Labels)
		set := must.M1(data.New(data.X(asFloat32(c.Logits), n, 1), data.Y(c.Labels, n, 1)))
		found, err := m.Calibrate(t.Context(), set)
		require.NoError(t, err, c.Name)
		got := found["preds"][0]
		require.InEpsilon(t, c.Scale, got.Scale, 1e-5, c.Name)
		require.InEpsilon(t, c.Shift, got.Shift, 1e-5, c.Name)
		worstScale = max(worstScale, math.Abs(got.Scale/c.Scale-1), math.Abs(got.Shift/c.Shift-1))
		if c.Exact != nil {
			require.InEpsilon(t, c.Exact[0], got.Scale, 1e-8, c.Name)
			require.InEpsilon(t, c.Exact[1], got.Shift, 1e-8, c.Name)
			worstExact = max(worstExact, math.Abs(got.Scale/c.Exact[0]-1), math.Abs(got.Shift/c.Exact[1]-1))
		}
		p, err := probabilitiesOf(t, m, set)
		require.NoError(t, err)
		compare(c.Name, c.Probabilities, p)
	}
	for _, c := range peer.Reliability {
		r, err := plots.ReliabilityOf(c.Positive, c.Scores, c.Bins)
		require.NoError(t, err)
		require.Equal(t, c.Counts, r.Counts)
		require.InDeltaSlice(t, c.Shares, r.Shares, 1e-12)
		require.InDeltaSlice(t, c.Means, r.Probabilities, 1e-12)
		require.InDelta(t, c.Error, r.Error, 1e-12)
	}
	t.Logf("12 calibrations: probabilities within %.1e of scikit-learn's and scipy's, Platt's scale and shift within %.1e of scikit-learn's, "+
		"relative, all within %.1e of the exact minimum", worst, worstScale, worstExact)
}

func TestCalibrate_refuses(t *testing.T) {
	set := func(x []float32, width int, y any) *data.Set {
		n := len(x) / width
		labels := data.Array{Flat: y, Dims: []int{n}}
		return must.M1(data.New(data.X(x, n, width), data.Field{Name: "y", Array: labels}))
	}
	two := []float32{1, 0, 0, 1, 1, 0}
	for _, row := range []struct {
		loss, want string
		set        *data.Set
	}{
		{sparse, "the highest logit of all 3 examples is that of their class", set(two, 2, []int32{0, 1, 0})},
		{sparse, "the logits are no better than chance: a higher one makes its class no likelier: compare the numbering of the classes", set(two, 2, []int32{1, 0, 1})},
		{sparse, `labels "y": that of example 1 is 2, expected a class from 0 to 1`, set(two, 2, []int32{0, 2, 0})},
		{"binary_crossentropy", "class 0: 0 of 3 examples belong to it", set([]float32{1, 2, 3}, 1, []float32{0, 0, 0})},
		{"binary_crossentropy", "class 0: all examples have the same logit", set([]float32{1, 1, 1}, 1, []float32{0, 1, 0})},
		{"binary_crossentropy", "class 0: its logits are no higher where the label is 1 than where it is 0 (their scale would be -0.944), which calibration cannot correct: compare the set's labels", set([]float32{1, 2, 3}, 1, []float32{1, 1, 0})},
		{"binary_crossentropy", `labels "y": example 1 has 0.5, expected 0 or 1`, set([]float32{1, 2, 3}, 1, []float32{1, 0.5, 0})},
		{"binary_crossentropy", "there are 3 for 3 examples of 2 classes", set(two, 2, []float32{1, 0, 0})},
		{"binary_crossentropy", "input +Inf of example 2 in the batch is out of range", set([]float32{1, 2, float32(math.Inf(1))}, 1, []float32{1, 0, 0})},
		{"dice", "no loss by name says whether its numbers are logits", set([]float32{1, 0, 1}, 1, []float32{1, 0, 1})},
		{"mse", "none of the outputs [\"preds\"] has classes", set(two, 2, []int32{0, 1, 0})},
	} {
		m := logits(t, row.loss)
		_, err := m.Calibrate(t.Context(), row.set)
		require.ErrorContains(t, err, row.want)
		require.ErrorContains(t, err, "flaxlike: calibrate: ")
		require.Empty(t, m.Describe().Calibrations)
	}
	m := logits(t, sparse)
	require.ErrorContains(t, m.SetCalibration("", decision.Calibration{Scale: 1}), "the model has not seen a batch")
	_, err := m.Predict(t.Context(), set(two, 2, []int32{0, 1, 0}))
	require.NoError(t, err)
	require.ErrorContains(t, m.SetCalibration("", decision.Calibration{Scale: -1}), "expected a Scale above 0")
	require.ErrorContains(t, m.SetCalibration("", decision.Calibration{Scale: 1, Shift: 1}), "expected one Calibration without a Shift")
	require.ErrorContains(t, m.SetCalibration("other", decision.Calibration{Scale: 1}), `output "other": unknown name; the model has ["preds"]`)
	require.ErrorContains(t, m.SetThresholds("", 0.5), "each example has one of several classes")
	_, err = m.ChooseThresholds(t.Context(), set(two, 2, []int32{0, 1, 0}), decision.Aim{})
	require.ErrorContains(t, err, "thresholds are for binary_crossentropy or a sigmoid")
}

// Thresholds are the best ones there are: no other one, tried one by one, does better.
func TestChooseThresholds(t *testing.T) {
	same := nn.Func(func(scope *model.Scope, x *graph.Node) *graph.Node { // with a variable, so that it can be saved
		return graph.Add(x, graph.MulScalar(nn.Dense{Units: 1}.Apply(scope.In("none"), x), 0))
	})
	x := []float32{-3, -2, -1, -1, 0, 1, 1, 2, 3, 4}
	y := []float32{0, 1, 0, 0, 1, 0, 1, 1, 0, 1}
	set := must.M1(data.New(data.X(x, 10, 1), data.Y(y, 10, 1)))
	m := newModel(t, same, flaxlike.WithLoss("binary_crossentropy"))
	p := must.M1(probabilitiesOf(t, m, set)).Flat.([]float32)
	at := func(threshold float64) (precision, recall, f1 float64) {
		tp, fp, fn := 0.0, 0.0, 0.0
		for i, v := range p {
			switch {
			case float64(v) > threshold && y[i] == 1:
				tp++
			case float64(v) > threshold:
				fp++
			case y[i] == 1:
				fn++
			}
		}
		return tp / max(1, tp+fp), tp / (tp + fn), 2 * tp / (2*tp + fp + fn)
	}
	for _, row := range []struct {
		aim  decision.Aim
		good func(precision, recall, f1 float64) float64 // -1 where the aim is not reached
	}{
		{decision.Aim{}, func(_, _, f1 float64) float64 { return f1 }},
		{decision.Aim{Precision: 0.6}, func(p, r, _ float64) float64 {
			if p < 0.6 {
				return -1
			}
			return r
		}},
		{decision.Aim{Recall: 0.9}, func(p, r, _ float64) float64 {
			if r < 0.9 {
				return -1
			}
			return p
		}},
	} {
		found, err := m.ChooseThresholds(t.Context(), set, row.aim)
		require.NoError(t, err)
		got := found["preds"][0]
		precision, recall, f1 := at(got.Value)
		require.InDelta(t, precision, got.Precision, 1e-12)
		require.InDelta(t, recall, got.Recall, 1e-12)
		require.InDelta(t, f1, got.F1, 1e-12)
		best := -1.0
		for threshold := 0.0; threshold < 1; threshold += 0.001 {
			best = max(best, row.good(at(threshold)))
		}
		require.InDelta(t, best, row.good(at(got.Value)), 1e-12, "%v", row.aim)
		require.Equal(t, map[string][]float64{"preds": {got.Value}}, m.Describe().Thresholds)
		said := must.M1(classesOf(t, m, set)).Flat.([]int32)
		for i, v := range p {
			require.Equal(t, float64(v) > got.Value, said[i] == 1)
		}
	}
	_, err := m.ChooseThresholds(t.Context(), set, decision.Aim{Precision: 1})
	require.NoError(t, err, "the highest is right")
	y[9] = 0
	before := m.Describe().Thresholds
	_, err = m.ChooseThresholds(t.Context(), set, decision.Aim{Precision: 0.95})
	require.EqualError(t, err, `flaxlike: choose thresholds: output "preds": class 0: no threshold reaches a precision of 0.95: the best that a threshold reaches is 0.5`)
	require.Equal(t, before, m.Describe().Thresholds)
	_, err = m.ChooseThresholds(t.Context(), set, decision.Aim{Recall: 2})
	require.ErrorContains(t, err, "the aim is {Precision:0 Recall:2}, expected a Precision or a Recall from 0 to 1")
	_, err = m.ChooseThresholds(t.Context(), set, decision.Aim{Precision: 0.5, Recall: 0.5})
	require.ErrorContains(t, err, "expected one of the two")

	given := must.M1(classesOf(t, m, set, 0)).Flat
	require.Equal(t, []int32{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, given, "what is given is in place of what was chosen")

	path := filepath.Join(t.TempDir(), "model.safetensors")
	require.NoError(t, m.Save(path))
	require.Equal(t, m.Describe().Thresholds, must.M1(flaxlike.Describe(path)).Thresholds)
	opened, err := flaxlike.Open(t.Context(), path, flaxlike.WithNetwork(same), flaxlike.WithStrategy(jit(t)))
	require.NoError(t, err)
	defer opened.Close()
	require.Equal(t, must.M1(classesOf(t, m, set)), must.M1(classesOf(t, opened, set)))

	// Thresholds are of the probabilities that there were.
	y[9] = 1
	_, err = opened.Calibrate(t.Context(), set)
	require.NoError(t, err)
	_, err = classesOf(t, opened, set)
	require.ErrorIs(t, err, flaxlike.ErrOutdated)
	require.ErrorContains(t, err, "its thresholds are outdated")
	_, err = classesOf(t, opened, set, 0.5)
	require.NoError(t, err)
	require.NoError(t, opened.SetThresholds("", 0.25))
	_, err = classesOf(t, opened, set)
	require.NoError(t, err)
}

// An output whose loss does not say what its probabilities are does not keep another one from being calibrated.
func TestS36_calibratesOneOutput(t *testing.T) {
	m := newModel(t, asIs(nil, "a", "b"), flaxlike.WithLoss(flaxlike.Loss{Name: "binary_crossentropy", Output: "a", Label: "y"},
		flaxlike.Loss{Name: "hinge", Output: "b", Label: "signs"}))
	set := must.M1(data.New(data.Named("a", []float32{-1, 1, 2, 3}, 4, 1), data.Named("b", []float32{3, 1, 2, 1.5}, 4, 1),
		data.Y([]int32{0, 1, 0, 1}, 4), data.Named("signs", []float32{-1, 1, -1, 1}, 4, 1)))
	found := must.M1(m.Calibrate(t.Context(), set))
	require.Len(t, found, 1)
	require.Equal(t, found, must.M1(m.Calibrate(t.Context(), set, "a")))
	require.Equal(t, found, m.Describe().Calibrations)
	_, err := m.Calibrate(t.Context(), set, "a", "b")
	require.ErrorIs(t, err, flaxlike.ErrNoProbabilities)
	_, err = m.Calibrate(t.Context(), set, "c")
	require.ErrorContains(t, err, `output "c": unknown name; the model has ["a" "b"]`)
}

// One example of several classes is one example, and not as many as it has classes: its array has the axis of the
// examples, as that of many has, with a calibration for each class too.
func TestS30_oneExampleIsOne(t *testing.T) {
	x := []float32{0, 3, 1, 2, -1, -2, -3, -1, 4}
	set := must.M1(data.New(data.X(x, 3, 3), data.Y([]int32{1, 0, 2}, 3)))
	m := logits(t, sparse)
	all := must.M1(m.Predict(t.Context(), set))
	require.Equal(t, []int32{1, 0, 2}, must.M1(all.Classes()).Flat)
	for i := range 3 {
		one := must.M1(m.PredictOne(t.Context(), data.X(x[3*i:3*i+3], 3)))
		require.Equal(t, 1, one.Len())
		require.Equal(t, data.Array{Flat: []int32{[]int32{1, 0, 2}[i]}, Dims: []int{1}}, must.M1(one.Classes()))
		require.Equal(t, must.M1(all.Probabilities()).Slice(i, i+1), must.M1(one.Probabilities()))
		require.Equal(t, must.M1(all.Labels())[i:i+1], must.M1(one.Labels()))
	}

	several := logits(t, "binary_crossentropy")
	require.NoError(t, several.Init(t.Context(), data.Batch{Fields: []data.Field{data.X(x[:3], 1, 3)}}))
	require.NoError(t, several.SetCalibration("", decision.Calibration{Scale: 1}, decision.Calibration{Scale: 1, Shift: -9}, decision.Calibration{Scale: 1, Shift: 9}))
	require.NoError(t, several.SetThresholds("", 0.2, 0.3, 0.9))
	all = must.M1(several.Predict(t.Context(), set))
	for i := range 3 {
		one := must.M1(several.PredictOne(t.Context(), data.X(x[3*i:3*i+3], 3)))
		require.Equal(t, must.M1(all.Probabilities()).Slice(i, i+1), must.M1(one.Probabilities()))
		require.Equal(t, must.M1(all.Classes()).Slice(i, i+1), must.M1(one.Classes()))
		require.Equal(t, must.M1(all.Labels())[i:i+1], must.M1(one.Labels()))
	}
	require.Equal(t, [][]string{{"0", "2"}, {"0", "2"}, {"2"}}, must.M1(all.Labels()), "of any number of classes")
}

// The thresholds of one output are chosen without those of another.
func TestS36_thresholdsOfOneOutput(t *testing.T) {
	m := newModel(t, asIs(nil, "a", "b", "c"), flaxlike.WithLoss(flaxlike.Loss{Name: "binary_crossentropy", Output: "a", Label: "y"},
		flaxlike.Loss{Name: "binary_crossentropy", Output: "b", Label: "y"}, flaxlike.Loss{Name: sparse, Output: "c", Label: "y"}))
	set := must.M1(data.New(data.Named("a", []float32{-1, 1, 2, 3}, 4, 1), data.Named("b", []float32{3, 1, 2, 1.5}, 4, 1),
		data.Named("c", make([]float32, 8), 4, 2), data.Y([]int32{0, 1, 0, 1}, 4)))
	must.M1(m.ChooseThresholds(t.Context(), set, decision.Aim{}))
	before := m.Describe().Thresholds
	require.Len(t, before, 2)
	found := must.M1(m.ChooseThresholds(t.Context(), set, decision.Aim{Precision: 1}, "a"))
	require.Len(t, found, 1)
	require.NotEqual(t, before["a"], m.Describe().Thresholds["a"])
	require.Equal(t, before["b"], m.Describe().Thresholds["b"])
	_, err := m.ChooseThresholds(t.Context(), set, decision.Aim{}, "c")
	require.ErrorContains(t, err, "and the likeliest is predicted")
	_, err = m.ChooseThresholds(t.Context(), set, decision.Aim{}, "d")
	require.ErrorContains(t, err, `output "d": unknown name; the model has ["a" "b" "c"]`)
}

// logits is a model whose output is its input, with a loss of classes.
func logits(t *testing.T, loss string) *flaxlike.Model {
	return newModel(t, nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node { return x }), flaxlike.WithLoss(loss), flaxlike.WithBatchSize(64))
}

// tooSure are examples of three classes whose logits are right in three of four cases, and say more.
func tooSure(t *testing.T, n int) *data.Set {
	x, y := make([]float32, 3*n), make([]int32, n)
	for i := range y {
		y[i] = int32(i % 3)
		at := i % 3
		if i%4 == 0 {
			at = (at + 1) % 3
		}
		x[3*i+at] = 5
	}
	return must.M1(data.New(data.X(x, n, 3), data.Y(y, n)))
}
