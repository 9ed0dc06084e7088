package metrics_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/xla"
)

// peers is testdata/peers.json: the results of scikit-learn, clu and Keras, written by make_fixtures.py.
type peers struct {
	Data struct {
		Labels, Truth, Classes                        []int32
		Logits, Vectors, Others                       [][]float32
		Grid, Anywhere, Targets, Predictions, Weights []float32
	}
	Rows []struct {
		Metric, Peer, Inputs, Weights string
		Value                         []float64
	}
}

// byName are the metrics that the rows name.
func byName() map[string]metrics.Metric {
	all := map[string]metrics.Metric{
		"Accuracy": metrics.Accuracy(), "TopK(2)": metrics.TopK(2), "ConfusionMatrix(4)": metrics.ConfusionMatrix(4),
		"CrossEntropy": metrics.CrossEntropy(), "Perplexity": metrics.Perplexity(),
		"AUC(257)": metrics.AUC(257), "AUC(200)": metrics.AUC(200), "AveragePrecision(257)": metrics.AveragePrecision(257),
		"MeanSquaredError": metrics.MeanSquaredError(), "RootMeanSquaredError": metrics.RootMeanSquaredError(),
		"MeanAbsoluteError": metrics.MeanAbsoluteError(), "R2": metrics.R2(1), "CosineSimilarity": metrics.CosineSimilarity(),
		"Pearson": metrics.Pearson(1), "Concordance": metrics.Concordance(1), "MeanIoU(4)": metrics.MeanIoU(4), "MeanIoU(5)": metrics.MeanIoU(5),
		"IoU(2, macro)": metrics.IoU(2, metrics.Macro), "Mean": metrics.Mean(), "StandardDeviation": metrics.StandardDeviation(),
	}
	for _, a := range []metrics.Average{metrics.Macro, metrics.Micro, metrics.Weighted, metrics.PerClass, metrics.Binary} {
		n := 4
		if a == metrics.Binary {
			n = 2
		}
		for name, m := range map[string]metrics.Metric{"Precision": metrics.Precision(n, a), "Recall": metrics.Recall(n, a),
			"F1": metrics.FBeta(1, n, a), "FBeta(2)": metrics.FBeta(2, n, a), "IoU": metrics.IoU(n, a), "Specificity": metrics.Specificity(n, a)} {
			all[fmt.Sprintf("%s(%d, %s)", name, n, a)] = m
		}
	}
	for _, at := range []float64{0.25, 0.7} {
		for name, sides := range map[string][2]string{"PrecisionAtRecall": {"precision", "recall"}, "RecallAtPrecision": {"recall", "precision"},
			"SensitivityAtSpecificity": {"recall", "specificity"}, "SpecificityAtSensitivity": {"specificity", "recall"}} {
			all[fmt.Sprintf("%s(%g)", name, at)] = metrics.BestAt(sides[0], sides[1], at, 200)
		}
	}
	return all
}

// columns returns the data of a range of examples, padded to 16 with values that must not count: NaN, invalid labels,
// weights of 0.
func (p *peers) columns(from, to int) (names []string, columns []any) {
	add := func(name string, column any) {
		names, columns = append(names, name), append(columns, column)
	}
	d, nan := p.Data, float32(math.NaN())
	weights := padded(d.Weights[from:to], 0)
	mask, present := make([]bool, len(weights)), make([]bool, len(weights))
	for i, w := range weights {
		mask[i], present[i] = w > 0, i < to-from
	}
	add("weights", weights)
	add("mask", mask)
	add("none", present)
	add("labels", padded(d.Labels[from:to], -7))
	add("truth", padded(d.Truth[from:to], -7))
	add("classes", padded(d.Classes[from:to], -7))
	add("logits", padded(d.Logits[from:to], []float32{nan, nan, nan, nan}))
	add("vectors", padded(d.Vectors[from:to], []float32{nan, nan, nan}))
	add("others", padded(d.Others[from:to], []float32{nan, nan, nan}))
	add("grid", padded(d.Grid[from:to], nan))
	add("anywhere", padded(d.Anywhere[from:to], nan))
	add("targets", padded(d.Targets[from:to], nan))
	add("predictions", padded(d.Predictions[from:to], nan))
	return names, columns
}

func TestMetrics_sayWhatTheirPeersSay(t *testing.T) {
	file, err := os.ReadFile("testdata/peers.json")
	require.NoError(t, err)
	var p peers
	require.NoError(t, json.Unmarshal(file, &p))
	all := byName()
	var c together
	for i, row := range p.Rows {
		m, known := all[row.Metric]
		require.True(t, known, row.Metric)
		inputs := row.Inputs
		if trimmed, ok := strings.CutSuffix(inputs, ">0.5"); ok {
			inputs = trimmed
			m = metrics.MapInputs(m, func(in []*graph.Node) []*graph.Node {
				return []*graph.Node{in[0], metrics.Threshold(in[1], 0.5)}
			})
		}
		c.Collection = append(c.Collection, metrics.Entry{Name: fmt.Sprint(i), Metric: m, Inputs: strings.Fields(inputs), Weights: row.Weights})
	}
	n := len(p.Data.Labels)
	require.NotZero(t, n%16, "there must be a padded batch")
	var batches []batch
	for from := 0; from < n; from += 16 {
		names, columns := p.columns(from, min(from+16, n))
		c.outputs = names
		batches = append(batches, batch{inputs: columns})
	}
	platforms(t, func(t *testing.T, r *xla.Runtime) {
		g := newGauge(t, r, c)
		values := g.values(t, g.add(t, g.empty(t), batches...))
		worst := map[string]float64{}
		for i, row := range p.Rows {
			tolerance := 1e-6 // of the peers that compute in float32
			switch {
			case row.Metric == "R2" && row.Peer == "Keras": // a difference of sums of squares around 2,500 each
				tolerance = 1e-5
			case row.Metric == "Mean" && row.Inputs == "targets":
				tolerance = 1e-4 // of 49
			case (row.Peer == "scikit-learn" || row.Peer == "NumPy") && row.Metric != "CrossEntropy" && row.Metric != "Perplexity":
				tolerance = 1e-12 // both compute in float64 from the same input
			}
			got := values[fmt.Sprint(i)]
			near(t, row.Value, got, tolerance, row.Metric, row.Peer, row.Weights)
			for i := range got {
				worst[row.Peer] = max(worst[row.Peer], math.Abs(got[i]-row.Value[i]))
			}
		}
		t.Logf("%d figures compared; the greatest differences: %v", len(p.Rows), worst)
	})
}

// padded fills a batch up to 16.
func padded[E any](list []E, with E) []E {
	list = slices.Clone(list)
	for len(list) < 16 {
		list = append(list, with)
	}
	return list
}
