package report_test

import (
	"io"
	"strings"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/decision"
	"github.com/lazo-ml/lazo/flaxlike/report"
	"github.com/lazo-ml/lazo/nn"
)

// The card has the settings that change what a model learns and answers, and checksums of both sets.
func TestCard(t *testing.T) {
	set := must.M1(data.New(data.X([]float32{1, 2, 3, 4}, 4, 1), data.Y([]float32{0, 1, 0, 1}, 4, 1)))
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss(flaxlike.Loss{Name: "binary_focal_crossentropy", Gamma: 3}), flaxlike.WithMetrics("auc"),
		flaxlike.WithClassWeights(map[int]float64{1: 4}), flaxlike.WithClasses([]string{"no", "yes"}))
	must.M1(m.Fit(t.Context(), set, flaxlike.Fit{Output: io.Discard}))
	require.NoError(t, m.SetCalibration("", decision.Calibration{Scale: 2}))
	require.NoError(t, m.SetThresholds("", 0.3))
	texts, _ := written(t, report.Run{Model: m, Test: set})
	all := strings.Join(texts, "\n")
	for _, text := range []string{"loss\nbinary_focal_crossentropy, gamma 3\n", "weights of classes\n1: 4\n", "metrics\nauc\n", "classes\nno, yes\n", "calibration of preds\n[temperature 0.5]\n",
		"thresholds of preds\n[0.3]\n"} {
		require.Contains(t, all, text)
	}
	require.Equal(t, cells(texts, "Data", 0, "training checksum")[0], cells(texts, "Data", 0, "test checksum")[0])
}
