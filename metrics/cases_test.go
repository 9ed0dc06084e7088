//lazo:norace
package metrics_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/xla"
)

func inputs(in ...any) batch { return batch{inputs: in} }

var nan = math.NaN()

// valued is a metric, a batch and the metric's values for it.
type valued struct {
	name   string
	metric metrics.Metric
	b      batch
	want   []float64
}

func cases(t *testing.T, rows []valued) {
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

// refused is a metric, a batch and the error of the two.
type refused struct {
	name   string
	metric metrics.Metric
	b      batch
	want   string
}

func refusals(t *testing.T, rows []refused) {
	r := plugintest.CPU(t) // which has complex numbers
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := measure(r, row.metric, row.b)
			require.ErrorContains(t, err, row.want)
		})
	}
}
