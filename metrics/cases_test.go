//lazo:norace
package metrics_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/xla"
)

func inputs(in ...any) batch { return batch{inputs: in} }

var nan = math.NaN()

func TestMetrics_cases(t *testing.T) {
	several := inputs([][]int32{{1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 0}, {1, 1, 0}}, [][]int32{{1, 0, 1}, {0, 1, 0}, {0, 1, 0}, {1, 0, 0}, {1, 0, 0}})
	scores := [][]float32{{0.1, 0.7, 0.2}, {0.5, 0.5, 0}, {0, 1, 2}}
	broken := [][]float32{{0.1, 0.7, 0.2}, {0.5, float32(nan), 0}, {0, 1, 2}}
	inf := math.Inf(1)
	const third = 1. / 3
	rows := []struct {
		name   string
		metric metrics.Metric
		b      batch
		want   []float64
	}{
		{"accuracy of scores", metrics.Accuracy(), inputs([]int32{1, 1, 2}, scores), []float64{2 * third}},
		{"accuracy of one-hot labels", metrics.Accuracy(), inputs([][]float32{{0, 1, 0}, {1, 0, 0}, {1, 0, 0}}, scores), []float64{2 * third}},
		{"accuracy of classes", metrics.Accuracy(), inputs([]uint8{1, 1, 2}, []int64{1, 0, 2}), []float64{2 * third}},
		{"accuracy of sequences", metrics.Accuracy(), batch{[][]bool{{true, true}, {true, false}}, []any{[][]int32{{1, 1}, {0, 0}}, [][]int32{{1, 0}, {0, 0}}}}, []float64{2 * third}},
		{"a label too large", metrics.Accuracy(), inputs([]int32{1, 3, 2}, scores), []float64{nan}},
		{"a label below 0", metrics.Accuracy(), inputs([]int32{1, -1, 2}, []int32{1, 0, 2}), []float64{nan}},
		{"a label that wraps around in 32 bits", metrics.Accuracy(), inputs([]int64{1, 1 << 32, 2}, scores), []float64{nan}},
		{"a label too large that does not count", metrics.Accuracy(), batch{[]bool{true, false, true}, []any{[]int32{1, 3, 2}, scores}}, []float64{1}},
		{"accuracy of a NaN", metrics.Accuracy(), inputs([]int32{1, 1, 2}, broken), []float64{nan}},
		{"top 1, equals are in", metrics.TopK(1), inputs([]int32{1, 1, 2}, scores), []float64{1}},
		{"top 2", metrics.TopK(2), inputs([]int32{0, 2, 0}, scores), []float64{0}},
		{"more than there are", metrics.TopK(9), inputs([]int32{0, 2, 0}, scores), []float64{1}},
		{"top of a NaN", metrics.TopK(3), inputs([]int32{1, 0, 2}, broken), []float64{nan}},
		{"top of a label too large", metrics.TopK(3), inputs([]int32{1, 0, 3}, scores), []float64{nan}},
		{"cross-entropy of equals", metrics.CrossEntropy(), inputs([]int32{0, 1}, [][]float32{{5, 5}, {1, 1}}), []float64{math.Ln2}},
		{"cross-entropy of probabilities", metrics.CrossEntropy(), inputs([][]float32{{0.5, 0.5}}, [][]float32{{5, 5}}), []float64{math.Ln2}},
		{"cross-entropy of what cannot be", metrics.CrossEntropy(), inputs([][]float32{{1, 0}}, [][]float32{{0, float32(-inf)}}), []float64{0}},
		{"cross-entropy of a label too large", metrics.CrossEntropy(), inputs([]int32{0, 2}, [][]float32{{5, 5}, {1, 1}}), []float64{nan}},
		{"perplexity of equals", metrics.Perplexity(), inputs([]int32{0, 1}, [][]float32{{5, 5}, {1, 1}}), []float64{2}},
		{"confusion", metrics.ConfusionMatrix(3), batch{[]float32{1, 0.5, 2}, []any{[]int32{1, 1, 2}, scores}}, []float64{0, 0, 0, 0.5, 1, 0, 0, 0, 2}},
		{"confusion with a label too large", metrics.ConfusionMatrix(2), inputs([]int32{1, 2}, []int32{1, 1}), []float64{nan, nan, nan, nan}},
		{"confusion with a prediction too large", metrics.ConfusionMatrix(2), inputs([]int32{1, 1}, []int32{1, 2}), []float64{nan, nan, nan, nan}},
		{"a class never predicted", metrics.Precision(3, metrics.PerClass), inputs([]int32{0, 1, 2}, []int32{0, 1, 1}), []float64{1, 0.5, 0}},
		{"a class never seen", metrics.Recall(3, metrics.Macro), inputs([]int32{0, 1, 1}, []int32{0, 1, 2}), []float64{0.5}},
		{"scores with a label too large", metrics.FBeta(1, 3, metrics.Micro), inputs([]int32{0, 3}, []int32{0, 1}), []float64{nan}},
		{"scores without an example", metrics.FBeta(1, 2, metrics.Binary), batch{[]bool{false}, []any{[]int32{0}, []int32{0}}}, []float64{nan}},
		{"specificity", metrics.Specificity(2, metrics.Binary), inputs([]int32{0, 0, 0, 1}, []int32{0, 1, 0, 0}), []float64{2 * third}},
		{"specificity, micro", metrics.Specificity(2, metrics.Micro), inputs([]int32{0, 0, 0, 1}, []int32{0, 1, 0, 0}), []float64{0.5}},
		{"a perfect curve", metrics.AUC(200), inputs([]int32{0, 1, 0, 1}, []float32{0, 0.9, 0.1, 1}), []float64{1}},
		{"a curve upside down", metrics.AUC(200), inputs([]bool{true, false}, []float32{0.2, 0.9}), []float64{0}},
		{"a curve of several labels, all cells pooled", metrics.AUC(200), inputs([][]int32{{1, 1}, {0, 0}}, [][]float32{{0.3, 0.9}, {0.1, 0.7}}), []float64{0.75}},
		{"an average precision of several labels, all cells pooled", metrics.AveragePrecision(200), inputs([][]int32{{1, 1}, {0, 0}}, [][]float32{{0.3, 0.9}, {0.1, 0.7}}), []float64{5. / 6}},
		{"a curve of equals", metrics.AUC(200), inputs([]float32{0, 1}, []float32{0.5, 0.5}), []float64{0.5}},
		{"a curve of one label", metrics.AUC(200), inputs([]int32{1, 1}, []float32{0.1, 0.5}), []float64{nan}},
		{"a soft label", metrics.AUC(200), inputs([]float32{0, 0.5}, []float32{0.1, 0.5}), []float64{nan}},
		{"a logit for a probability", metrics.AUC(200), inputs([]int32{0, 1}, []float32{0.1, 1.5}), []float64{nan}},
		{"a NaN in a curve", metrics.AUC(200), inputs([]int32{0, 1}, []float32{0.1, float32(nan)}), []float64{nan}},
		{"average precision without label 0", metrics.AveragePrecision(200), inputs([]int32{1, 1}, []float32{0.1, 0.5}), []float64{1}},
		{"average precision without label 1", metrics.AveragePrecision(200), inputs([]int32{0, 0}, []float32{0.1, 0.5}), []float64{nan}},
		{"a class in neither has no part in the mean", metrics.MeanIoU(3), inputs([]int32{0, 1, 1}, []int32{0, 0, 1}), []float64{0.5}},
		{"a class in neither has 0", metrics.IoU(3, metrics.PerClass), inputs([]int32{0, 1, 1}, []int32{0, 0, 1}), []float64{0.5, 0.5, 0}},
		{"mean IoU without an example", metrics.MeanIoU(3), batch{false, []any{[]int32{0}, []int32{0}}}, []float64{nan}},
		{"mean IoU with a label too large", metrics.MeanIoU(2), inputs([]int32{0, 2}, []int32{0, 1}), []float64{nan}},
		{"F with recall counting four times", metrics.FBeta(2, 2, metrics.Binary), inputs([]int32{1, 1, 0, 0}, []int32{1, 0, 0, 0}), []float64{5. / 9}},
		{"no threshold has it", metrics.BestAt("recall", "precision", 0.9, 200), inputs([]int32{0, 1}, []float32{0.9, 0.1}), []float64{0}},
		{"all are taken", metrics.BestAt("precision", "recall", 1, 200), inputs([]int32{0, 1, 1, 1}, []float32{0, 0, 0, 0}), []float64{0.75}},
		{"a tenth of ten", metrics.BestAt("recall", "specificity", 0.1, 3), inputs([]int32{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, []float32{0.5, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1}), []float64{1}},
		{"precision at recall without label 1", metrics.BestAt("precision", "recall", 0.5, 200), inputs([]int32{0}, []float32{0.5}), []float64{nan}},
		{"recall at precision without label 0", metrics.BestAt("recall", "precision", 0.5, 200), inputs([]int32{1}, []float32{0.5}), []float64{1}},
		{"specificity at sensitivity without label 0", metrics.BestAt("specificity", "recall", 0.5, 200), inputs([]int32{1}, []float32{0.5}), []float64{nan}},
		{"a NaN in an operating point", metrics.BestAt("precision", "recall", 0.5, 200), inputs([]int32{0, 1}, []float32{0.1, float32(nan)}), []float64{nan}},
		{"correlation upside down", metrics.Pearson(1), inputs([]float32{1, 2, 3}, []float32{3, 2, 1}), []float64{-1}},
		{"correlation of equals", metrics.Pearson(1), inputs([]float32{1, 2, 3}, []float32{2, 2, 2}), []float64{nan}},
		{"concordance of twice as much", metrics.Concordance(1), inputs([]float32{1, 2, 3}, []float32{2, 4, 6}), []float64{4. / 11}},
		{"R2 of equal targets", metrics.R2(1), inputs([]float32{2, 2}, []float32{2, 3}), []float64{-inf}},
		{"R2 of equal targets, all met", metrics.R2(1), inputs([]float32{2, 2}, []float32{2, 2}), []float64{nan}},
		{"cosine", metrics.CosineSimilarity(), inputs([][]float32{{1, 0}, {1, 1}, {2, 2}}, [][]float32{{0, 3}, {0, 0}, {1, 1}}), []float64{third}},
		{"min", metrics.Min(), batch{[]bool{true, false, true}, []any{[]float32{3, 1, 2}}}, []float64{2}},
		{"min of nothing", metrics.Min(), batch{false, []any{[]float32{3, 1, 2}}}, []float64{inf}},
		{"max", metrics.Max(), inputs([]int32{3, 1, 2}), []float64{3}},
		{"max of nothing", metrics.Max(), batch{false, []any{[]float32{3, 1, 2}}}, []float64{-inf}},
		{"sum", metrics.Sum(), batch{[]float32{0.5, 2, 0}, []any{[]float32{2, 1, float32(nan)}}}, []float64{3}},
		// for several labels: scikit-learn's, zero_division=0
		{"several labels, macro", metrics.MultiLabel(metrics.FBeta(1, 3, metrics.Macro)), several, []float64{0.48888889}},
		{"several labels, micro", metrics.MultiLabel(metrics.Precision(3, metrics.Micro)), several, []float64{2. / 3}},
		{"several labels, specificity", metrics.MultiLabel(metrics.Specificity(3, metrics.PerClass)), several, []float64{0.5, 1, 0.8}},
		{"several labels, weighted", metrics.MultiLabel(metrics.FBeta(1, 3, metrics.Weighted)), several, []float64{0.73333333}},
		{"several labels, weights", metrics.MultiLabel(metrics.FBeta(1, 3, metrics.PerClass)), batch{[]float32{1, 2, 1, 1, 3}, several.inputs}, []float64{0.72727273, 0.66666667, 0}},
		{"several labels, IoU", metrics.MultiLabel(metrics.MeanIoU(3)), several, []float64{0.38888889}},
		{"several labels, none of them", metrics.MultiLabel(metrics.Recall(2, metrics.Macro)), inputs([][]int32{{0, 0}}, [][]int32{{0, 1}}), []float64{0}},
		{"several labels, no example", metrics.MultiLabel(metrics.Recall(2, metrics.Macro)), batch{[]bool{false}, []any{[][]int32{{1, 0}}, [][]int32{{-1, 1}}}}, []float64{nan}},
		{"several labels, a NaN", metrics.MultiLabel(metrics.Recall(2, metrics.Macro)), inputs([][]int32{{1, 0}}, [][]int32{{-1, 1}}), []float64{nan}},
		{"two thresholds", metrics.AtThresholds(metrics.Recall(2, metrics.Binary), 0.3, 0.7), inputs([]bool{true, true, false}, []float32{0.5, 0.9, 0.8}), []float64{1, 0.5}},
		{"thresholds of several labels", metrics.AtThresholds(metrics.MultiLabel(metrics.Precision(2, metrics.Micro)), 0.3, 0.7), batch{[]float32{1, 2}, []any{[][]float32{{1, 0}, {1, 1}}, [][]float32{{0.5, 0.9}, {0.8, 0.2}}}}, []float64{0.75, 2 * third}},
		{"thresholds of a soft label", metrics.AtThresholds(metrics.Recall(2, metrics.Binary), 0.5), inputs([]float32{1, 0.7}, []float32{0.5, 0.9}), []float64{nan}},
		{"each class by its name", metrics.Each(metrics.Recall(3, metrics.PerClass), "a", "b", "c"), inputs([]int32{0, 1, 1}, []int32{0, 1, 2}), []float64{1, 0.5, 0}},
		{"the highest of equals", highest(2), inputs([][]float32{{1, 3, 3, 3}, {0, -1, -2, -1}}), []float64{0, 1, 1, 0, 1, 1, 0, 0}},
		{"the highest of a NaN", highest(1), inputs([][]float32{{1, 3, float32(nan), 3}}), []float64{-1, -1, -1, -1}},
		{"a NaN that counts", metrics.Mean(), inputs([]float32{1, float32(nan)}), []float64{nan}},
		{"threshold", metrics.MapInputs(metrics.Sum(), func(in []*graph.Node) []*graph.Node {
			return []*graph.Node{metrics.Threshold(in[0], 0.5)}
		}), inputs([]float32{0.5, 0.6, 0.1, float32(nan)}), []float64{0}},
	}
	platforms(t, func(t *testing.T, r *xla.Runtime) {
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				got, err := measure(r, row.metric, row.b)
				require.NoError(t, err)
				near(t, row.want, got, 1e-7)
			})
		}
	})
}

// A float32 count would stop at 16,777,216.
func TestMetrics_countTo1e8(t *testing.T) {
	platforms(t, func(t *testing.T, r *xla.Runtime) {
		c := together{metrics.Collection{
			{Name: "sum", Metric: metrics.Sum(), Inputs: []string{"ones"}},
			{Name: "matrix", Metric: metrics.ConfusionMatrix(2), Inputs: []string{"labels", "labels"}},
			{Name: "deviation", Metric: metrics.StandardDeviation(), Inputs: []string{"wide"}},
		}, []string{"ones", "labels", "wide"}}
		g := newGauge(t, r, c)
		b := inputs([]float32{1, 1}, []int32{1, 1}, []float32{10000 - 0.125, 10000 + 0.125})
		one := g.add(t, g.empty(t), b)
		many := one
		for range 26 {
			many = join(t, g.merge, many, many)
		}
		v := g.values(t, join(t, g.merge, many, one))
		require.Equal(t, []float64{1<<27 + 2}, v["sum"])
		require.Equal(t, []float64{0, 0, 0, 1<<27 + 2}, v["matrix"])
		require.InDelta(t, 0.125, v["deviation"][0], 1e-12)
		t.Logf("%.0f examples counted, 10,000 ± 0.125 is ± %.15f", v["sum"][0], v["deviation"][0])
	})
}

func TestMetrics_refuse(t *testing.T) {
	r := plugintest.CPU(t) // which has complex numbers
	scores := [][]float32{{0.1, 0.7}, {0.5, 0.5}}
	for _, row := range []struct {
		name   string
		metric metrics.Metric
		b      batch
		want   string
	}{
		{"too few inputs", metrics.Accuracy(), inputs([]int32{1, 1}), "metrics: Accuracy: 1 inputs given, expected 2: [labels predictions]"},
		{"complex numbers", metrics.Mean(), inputs([]complex64{1}), "metrics: Mean: the values must be real numbers"},
		{"weights too long", metrics.Mean(), batch{[]float32{1, 1, 1}, []any{scores}}, "metrics: Mean: weights (Float32)[3] do not fit examples of dimensions [2 2]"},
		{"weights of more axes", metrics.Accuracy(), batch{scores, []any{[]int32{1, 1}, scores}}, "weights (Float32)[2, 2] do not fit examples of dimensions [2]"},
		{"labels and scores of other lengths", metrics.Accuracy(), inputs([]int32{1, 1, 1}, scores), "labels (Int32)[3] and predictions (Float32)[2, 2] do not fit"},
		{"labels of truth values", metrics.Accuracy(), inputs([]bool{true, true}, scores), "metrics: Accuracy: labels (Bool)[2] are not classes: expected integers"},
		{"one-hot of other classes", metrics.Accuracy(), inputs([][]float32{{1, 0, 0}, {1, 0, 0}}, scores), "do not fit"},
		{"classes for scores", metrics.TopK(1), inputs([]int32{1, 1}, []int32{1, 1}), "metrics: TopK(1): expected k of at least 1 and predictions as scores"},
		{"top none", metrics.TopK(0), inputs([]int32{1, 1}, scores), "got k 0"},
		{"integer logits", metrics.CrossEntropy(), inputs([]int32{1, 1}, []int32{1, 1}), "metrics: CrossEntropy: logits (Int32)[2] must be floats"},
		{"probabilities of another shape", metrics.Perplexity(), inputs([]float32{1, 1}, scores), "metrics: Perplexity: labels (Float32)[2] as probabilities must have the dimensions"},
		{"other classes", metrics.ConfusionMatrix(3), inputs([]int32{1, 1}, scores), "metrics: ConfusionMatrix(3): expected at least 2 classes, and the same number in scores"},
		{"one class", metrics.Recall(1, metrics.Micro), inputs([]int32{1, 1}, []int32{1, 1}), "metrics: Recall(1, micro): expected at least 2 classes"},
		{"negative classes", metrics.Recall(-1, metrics.Micro), inputs([]int32{1, 1}, []int32{1, 1}), "metrics: Recall(-1, micro): expected at least 2 classes"},
		{"binary of three", metrics.FBeta(1, 3, metrics.Binary), inputs([]int32{1, 1}, []int32{1, 1}), "metrics: FBeta(1)(3, binary): unknown average over 3 classes"},
		{"an unknown average", metrics.FBeta(1, 3, 9), inputs([]int32{1, 1}, []int32{1, 1}), "metrics: FBeta(1)(3, Average(9)): unknown average"},
		{"one threshold", metrics.AUC(1), inputs([]int32{1, 1}, []float32{1, 1}), "metrics: AUC(1): expected at least 2 thresholds"},
		{"a curve of classes", metrics.AUC(9), inputs([]int32{1, 1}, []int32{1, 1}), "expected at least 2 thresholds, and labels and floating-point predictions"},
		{"a share above 1", metrics.BestAt("precision", "recall", 1.5, 200), inputs([]int32{1, 1}, []float32{1, 1}), "metrics: BestAt(precision, recall, 1.5)(200): expected a share from 0 to 1"},
		{"beta 0", metrics.FBeta(0, 2, metrics.Binary), inputs([]int32{1, 1}, []int32{1, 1}), "metrics: FBeta: beta is 0, expected a positive number"},
		{"correlation of other shapes", metrics.Pearson(1), inputs([]float32{1, 1}, []float32{1}), "metrics: Pearson: targets (Float32)[2] and predictions (Float32)[1] must have the same dimensions"},
		{"targets of another shape", metrics.R2(1), inputs([]float32{1, 1}, []float32{1}), "metrics: R2: targets (Float32)[2] and predictions (Float32)[1] must have the same dimensions"},
		{"columns that were not said", metrics.R2(1), inputs([][]float32{{1, 1}}, [][]float32{{1, 1}}), "metrics: R2(1): the targets (Float32)[1, 2] have 2 columns, the numbers of the last axis: expected R2(2)"},
		{"scores of one class", metrics.Accuracy(), inputs([]int32{0, 0}, [][]float32{{1}, {2}}), "metrics: Accuracy: predictions (Float32)[2, 1] are scores of one class"},
		{"logits of one class", metrics.Perplexity(), inputs([][]float32{{0}, {1}}, [][]float32{{1}, {2}}), "metrics: Perplexity: logits (Float32)[2, 1] are of one class"},
		{"several labels of no classes", metrics.MultiLabel(metrics.Accuracy()), inputs([]int32{0}, []int32{0}), "is not a metric that scores classes"},
		{"several labels of other classes", metrics.MultiLabel(metrics.FBeta(1, 3, metrics.Macro)), inputs([][]int32{{0, 1}}, [][]int32{{0, 1}}), "metrics: MultiLabel(FBeta(1)(3, macro)): labels (Int32)[1, 2]"},
		{"no threshold", metrics.AtThresholds(metrics.Recall(2, metrics.Binary)), inputs([]int32{1}, []float32{1}), "metrics: AtThresholds: expected at least 1 threshold, and labels"},
		{"a threshold twice", metrics.AtThresholds(metrics.Recall(2, metrics.Binary), 0.5, 0.5), inputs([]int32{1}, []float32{1}), `entry 1 has the name "0.5": expected a name that is not empty and that no other entry has`},
		{"another number of names", metrics.Each(metrics.Recall(2, metrics.PerClass), "a"), inputs([]int32{1}, []int32{1}), `metrics: Each: the value is (Float64)[2], expected an array of 1 numbers, as many as the names ["a"]`},
		{"the highest of too few", highest(3), inputs([][]float32{{1, 2}}), "metrics: Highest(3): expected scores, floats [examples…, classes], and a number from 1 to that of the classes, got (Float32)[1, 2]"},
		{"no vectors", metrics.CosineSimilarity(), inputs([]float32{1, 2}, []float32{1, 2}),
			"metrics: CosineSimilarity: the predictions (Float32)[2] have one number an example, whose cosine is 1 or -1 whatever its size"},
		{"vectors of one number", metrics.CosineSimilarity(), inputs([][]float32{{1}, {2}}, [][]float32{{1}, {2}}), "have one number an example"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := measure(r, row.metric, row.b)
			require.ErrorContains(t, err, row.want)
		})
	}
}

// highest shows the classes that Highest makes.
func highest(k int) metrics.Metric { return shown{k} }

type shown struct{ k int }

func (shown) Accumulators() []metrics.Accumulator { return nil }

func (shown) Merge(a, _ []*graph.Node) []*graph.Node { return a }

func (shown) Compute(acc []*graph.Node) []metrics.Value { return []metrics.Value{{Node: acc[0]}} }

func (s shown) Update(_ []*graph.Node, _ *graph.Node, in ...*graph.Node) []*graph.Node {
	return []*graph.Node{graph.ConvertDType(metrics.Highest(in[0], s.k), dtypes.Float64)}
}
