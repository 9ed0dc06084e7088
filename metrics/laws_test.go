package metrics_test

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/xla"
)

// every has one of each metric, over the outputs of examples.
func every() together {
	both, scored := []string{"a", "b"}, []string{"labels", "scores"}
	curve := []string{"truth", "probabilities"}
	binary := metrics.MapInputs(metrics.FBeta(1, 2, metrics.Binary), func(in []*graph.Node) []*graph.Node {
		return []*graph.Node{in[0], metrics.Threshold(in[1], 0.5)}
	})
	several := metrics.MapInputs(metrics.MultiLabel(metrics.ClassScores(3, metrics.Macro)), func(in []*graph.Node) []*graph.Node {
		return []*graph.Node{metrics.Threshold(in[0], 0), metrics.Threshold(in[1], 0)}
	})
	two := metrics.MapInputs(metrics.MultiLabel(metrics.Precision(3, metrics.Micro)), func(in []*graph.Node) []*graph.Node {
		return []*graph.Node{metrics.Highest(in[0], 1), metrics.Highest(in[1], 2)}
	})
	c := metrics.Collection{
		{Name: "mean", Metric: metrics.Mean(), Inputs: []string{"a"}},
		{Name: "mean of vectors", Metric: metrics.Mean(), Inputs: []string{"vectors"}},
		{Name: "sum", Metric: metrics.Sum(), Inputs: []string{"a"}},
		{Name: "deviation", Metric: metrics.StandardDeviation(), Inputs: []string{"a"}},
		{Name: "min", Metric: metrics.Min(), Inputs: []string{"a"}},
		{Name: "max", Metric: metrics.Max(), Inputs: []string{"a"}},
		{Name: "last", Metric: metrics.Last(), Inputs: []string{"a"}},
		{Name: "mse", Metric: metrics.MeanSquaredError(), Inputs: both},
		{Name: "rmse", Metric: metrics.RootMeanSquaredError(), Inputs: both},
		{Name: "mae", Metric: metrics.MeanAbsoluteError(), Inputs: both},
		{Name: "r2", Metric: metrics.R2(1), Inputs: both},
		{Name: "cosine", Metric: metrics.CosineSimilarity(), Inputs: []string{"vectors", "scores"}},
		{Name: "accuracy", Metric: metrics.Accuracy(), Inputs: scored},
		{Name: "top", Metric: metrics.TopK(2), Inputs: scored},
		{Name: "entropy", Metric: metrics.CrossEntropy(), Inputs: scored},
		{Name: "perplexity", Metric: metrics.Perplexity(), Inputs: scored},
		{Name: "confusion", Metric: metrics.ConfusionMatrix(3), Inputs: scored},
		{Name: "scores", Metric: metrics.ClassScores(3, metrics.Macro), Inputs: scored},
		{Name: "each", Metric: metrics.ClassScores(3, metrics.PerClass), Inputs: scored},
		{Name: "micro", Metric: metrics.ClassScores(3, metrics.Micro), Inputs: scored},
		{Name: "weighted", Metric: metrics.ClassScores(3, metrics.Weighted), Inputs: scored},
		{Name: "f1", Metric: binary, Inputs: curve},
		{Name: "auc", Metric: metrics.AUC(50), Inputs: curve},
		{Name: "iou", Metric: metrics.IoU(3, metrics.PerClass), Inputs: scored},
		{Name: "mean iou", Metric: metrics.MeanIoU(3), Inputs: scored},
		{Name: "several labels", Metric: several, Inputs: []string{"scores", "vectors"}},
		{Name: "fbeta", Metric: metrics.FBeta(0.5, 3, metrics.Weighted), Inputs: scored},
		{Name: "precision at recall", Metric: metrics.BestAt("precision", "recall", 0.5, 50), Inputs: curve},
		{Name: "recall at precision", Metric: metrics.BestAt("recall", "precision", 0.5, 50), Inputs: curve},
		{Name: "sensitivity at specificity", Metric: metrics.BestAt("recall", "specificity", 0.5, 50), Inputs: curve},
		{Name: "specificity at sensitivity", Metric: metrics.BestAt("specificity", "recall", 0.5, 50), Inputs: curve},
		{Name: "concordance", Metric: metrics.Concordance(1), Inputs: both},
		{Name: "thresholds", Metric: metrics.AtThresholds(metrics.ClassScores(2, metrics.Binary), 0.3, 0.5), Inputs: curve},
		{Name: "precision at 2", Metric: two, Inputs: []string{"scores", "vectors"}},
		{Name: "each class", Metric: metrics.Each(metrics.ClassScores(3, metrics.PerClass), "a", "b", "c"), Inputs: scored},
		{Name: "ap", Metric: metrics.AveragePrecision(50), Inputs: curve},
	}
	for i := range c {
		c[i].Weights = "weights"
	}
	return together{c, []string{"labels", "truth", "a", "b", "probabilities", "scores", "vectors"}}
}

type example struct {
	weight            float32
	label, truth      int32
	a, b, probability float32
	scores, vector    []float32
}

func drawExample(t *rapid.T) example {
	number := func(name string, most float64) float32 { return float32(rapid.Float64Range(-most, most).Draw(t, name)) }
	e := example{
		weight:      float32(rapid.IntRange(0, 3).Draw(t, "weight")),
		label:       int32(rapid.IntRange(0, 2).Draw(t, "label")),
		truth:       int32(rapid.IntRange(0, 1).Draw(t, "truth")),
		a:           number("a", 10),
		b:           number("b", 10),
		probability: float32(rapid.Float64Range(0, 1).Draw(t, "probability")),
	}
	for range 3 {
		e.scores = append(e.scores, number("score", 4))
		e.vector = append(e.vector, number("vector", 2))
	}
	if e.weight == 0 { // examples of weight 0 may have any value
		nan := float32(math.NaN())
		e.label, e.truth, e.a, e.b, e.probability = 99, -1, nan, nan, 2
		e.scores, e.vector = []float32{nan, nan, nan}, []float32{nan, nan, nan}
	}
	return e
}

// pack makes a batch of a fixed size of examples, with more of weight 0 at its end.
func pack(list []example, size int) batch {
	var weights, a, b, probabilities []float32
	var labels, truth []int32
	var scores, vectors [][]float32
	nan := float32(math.NaN())
	none := example{label: -100, truth: 7, a: nan, b: nan, probability: nan, scores: []float32{nan, 1, 2}, vector: []float32{nan, nan, 0}}
	for i := range size {
		e := none
		if i < len(list) {
			e = list[i]
		}
		weights, a, b = append(weights, e.weight), append(a, e.a), append(b, e.b)
		labels, truth = append(labels, e.label), append(truth, e.truth)
		probabilities, scores, vectors = append(probabilities, e.probability), append(scores, e.scores), append(vectors, e.vector)
	}
	return batch{weights, []any{labels, truth, a, b, probabilities, scores, vectors}}
}

func TestMetrics_laws(t *testing.T) {
	const most = 24
	c := every()
	platforms(t, func(t *testing.T, r *xla.Runtime) {
		g := newGauge(t, r, c)
		empty := g.empty(t)
		checked := 0
		same := func(t *rapid.T, what string, want, got state, not ...string) {
			w, v := g.values(t, want), g.values(t, got)
			require.Equal(t, len(w), len(v))
			for name := range w {
				tolerance := 1e-9
				if name == "r2" || name == "perplexity" { // either can be large
					tolerance = 1e-9 * max(1, math.Abs(w[name][0]))
				}
				if !slices.Contains(not, name) {
					near(t, w[name], v[name], tolerance, what, name)
					checked++
				}
			}
		}
		rapid.Check(t, func(t *rapid.T) {
			list := rapid.SliceOfN(rapid.Custom(drawExample), 0, most).Draw(t, "examples")
			var parts []state // each gathered separately
			chain := empty    // all gathered in turn
			for rest := list; len(rest) > 0; {
				n := rapid.IntRange(1, min(8, len(rest))).Draw(t, "batch")
				b := pack(rest[:n], 8)
				parts, chain, rest = append(parts, g.add(t, empty, b)), g.add(t, chain, b), rest[n:]
			}
			whole := g.add(t, empty, pack(list, most))
			same(t, "split in batches", whole, chain, "last")
			joined := empty
			for _, p := range parts {
				joined = join(t, g.merge, joined, p)
			}
			same(t, "merge is update", chain, joined)
			reduced := empty
			for _, p := range parts {
				reduced = join(t, g.reduce, p, reduced)
			}
			same(t, "reduce is one batch", whole, reduced)
			same(t, "nothing on the right", chain, join(t, g.merge, chain, empty))
			same(t, "nothing on the left", chain, join(t, g.merge, empty, chain))
			same(t, "padding alone", chain, g.add(t, chain, pack(nil, 8)))
			if len(parts) > 2 {
				x, y, z := parts[0], parts[1], parts[2]
				same(t, "associative", join(t, g.merge, join(t, g.merge, x, y), z), join(t, g.merge, x, join(t, g.merge, y, z)))
				same(t, "commutative", join(t, g.merge, x, y), join(t, g.merge, y, x), "last")
			}
		})
		require.NotZero(t, checked)
		t.Logf("%d values of %d metrics compared", checked, len(c.Collection))
	})
}

// A metric's accumulators have the same shapes before and after a batch, so one program serves all steps.
func TestMetrics_keepTheirShapes(t *testing.T) {
	r := plugintest.Go(t)
	c := every()
	g := newGauge(t, r, c)
	s := g.add(t, g.empty(t), pack(nil, 8))
	for i, a := range c.Accumulators() {
		require.True(t, s[i].Shape().Equal(a.Shape), a.Name)
	}
}
