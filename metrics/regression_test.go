package metrics_test

import (
	"testing"

	"github.com/lazo-ml/lazo/metrics"
)

func TestCosineSimilarity_cases(t *testing.T) {
	const third = 1. / 3
	cases(t, []valued{
		{"cosine", metrics.CosineSimilarity(), inputs([][]float32{{1, 0}, {1, 1}, {2, 2}}, [][]float32{{0, 3}, {0, 0}, {1, 1}}), []float64{third}},
	})
}

func TestCosineSimilarity_refuses(t *testing.T) {
	refusals(t, []refused{
		{"no vectors", metrics.CosineSimilarity(), inputs([]float32{1, 2}, []float32{1, 2}),
			"metrics: CosineSimilarity: the predictions (Float32)[2] have one number an example, whose cosine is 1 or -1 whatever its size"},
		{"vectors of one number", metrics.CosineSimilarity(), inputs([][]float32{{1}, {2}}, [][]float32{{1}, {2}}), "have one number an example"},
	})
}
