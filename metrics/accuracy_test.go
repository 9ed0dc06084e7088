package metrics_test

import (
	"math"
	"testing"

	"github.com/lazo-ml/lazo/metrics"
)

func TestAccuracy_cases(t *testing.T) {
	scores := [][]float32{{0.1, 0.7, 0.2}, {0.5, 0.5, 0}, {0, 1, 2}}
	broken := [][]float32{{0.1, 0.7, 0.2}, {0.5, float32(nan), 0}, {0, 1, 2}}
	const third = 1. / 3
	cases(t, []valued{
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
		{"cross-entropy of what cannot be", metrics.CrossEntropy(), inputs([][]float32{{1, 0}}, [][]float32{{0, float32(math.Inf(-1))}}), []float64{0}},
		{"cross-entropy of a label too large", metrics.CrossEntropy(), inputs([]int32{0, 2}, [][]float32{{5, 5}, {1, 1}}), []float64{nan}},
		{"perplexity of equals", metrics.Perplexity(), inputs([]int32{0, 1}, [][]float32{{5, 5}, {1, 1}}), []float64{2}},
	})
}

func TestAccuracy_refuses(t *testing.T) {
	scores := [][]float32{{0.1, 0.7}, {0.5, 0.5}}
	refusals(t, []refused{
		{"too few inputs", metrics.Accuracy(), inputs([]int32{1, 1}), "metrics: Accuracy: 1 inputs given, expected 2: [labels predictions]"},
		{"labels and scores of other lengths", metrics.Accuracy(), inputs([]int32{1, 1, 1}, scores), "labels (Int32)[3] and predictions (Float32)[2, 2] do not fit"},
		{"labels of truth values", metrics.Accuracy(), inputs([]bool{true, true}, scores), "metrics: Accuracy: labels (Bool)[2] are not classes: expected integers"},
		{"one-hot of other classes", metrics.Accuracy(), inputs([][]float32{{1, 0, 0}, {1, 0, 0}}, scores), "do not fit"},
		{"classes for scores", metrics.TopK(1), inputs([]int32{1, 1}, []int32{1, 1}), "metrics: TopK(1): expected k of at least 1 and predictions as scores"},
		{"top none", metrics.TopK(0), inputs([]int32{1, 1}, scores), "got k 0"},
		{"integer logits", metrics.CrossEntropy(), inputs([]int32{1, 1}, []int32{1, 1}), "metrics: CrossEntropy: logits (Int32)[2] must be floats"},
		{"probabilities of another shape", metrics.Perplexity(), inputs([]float32{1, 1}, scores), "metrics: Perplexity: labels (Float32)[2] as probabilities must have the dimensions"},
		{"scores of one class", metrics.Accuracy(), inputs([]int32{0, 0}, [][]float32{{1}, {2}}), "metrics: Accuracy: predictions (Float32)[2, 1] are scores of one class"},
		{"logits of one class", metrics.Perplexity(), inputs([][]float32{{0}, {1}}, [][]float32{{1}, {2}}), "metrics: Perplexity: logits (Float32)[2, 1] are of one class"},
	})
}
