package flaxlike_test

import (
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

// Sample weights [batch, 1] are those of [batch], for outputs [batch, 1] and [batch, n], in losses and metrics.
func TestS22_weightsOfOneColumn(t *testing.T) {
	for _, width := range []int{1, 2} {
		var want map[string]float64
		for _, dims := range [][]int{{3}, {3, 1}} {
			set := must.M1(data.New(data.X([]float32{1, 2, 3, 4, 5, 6}[:3*width], 3, width), data.Y([]float32{0, 2, 1, 1, 0, 3}[:3*width], 3, width),
				data.Named("w", []float32{1, 0, 3}, dims...)))
			m := newModel(t, nn.Func(identity), flaxlike.WithLoss("mse"), flaxlike.WithSampleWeights("w"),
				flaxlike.WithMetrics(flaxlike.Metric{Name: "mae", Weighted: true}))
			found, err := m.Evaluate(t.Context(), set)
			require.NoError(t, err)
			if want == nil {
				want = found
			}
			require.Equal(t, want, found)
		}
	}
}
