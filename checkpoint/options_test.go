package checkpoint_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
)

// Any number in an option is an error that names it, or it works.
func TestR29_anyNumberIsAnErrorOrWorks(t *testing.T) {
	for name, row := range map[string]struct {
		options func(n int) checkpoint.Options
		works   func(n int) bool
	}{
		"Last":   {keep(func(n int) checkpoint.Retention { return checkpoint.Retention{Last: n} }), positive},
		"Lowest": {keep(func(n int) checkpoint.Retention { return checkpoint.Retention{Best: n, Metric: "loss"} }), positive},
		"Highest": {keep(func(n int) checkpoint.Retention {
			return checkpoint.Retention{Best: n, Metric: "loss", Mode: loop.Highest}
		}), positive},
		"EverySteps": {keep(func(n int) checkpoint.Retention { return checkpoint.Retention{EverySteps: checkpoint.Step(n)} }), positive},
		"EveryTime":  {keep(func(n int) checkpoint.Retention { return checkpoint.Retention{EveryTime: time.Duration(n)} }), positive},
	} {
		for _, n := range []int{math.MinInt, -1, 0, 1, math.MaxInt} {
			f, err := checkpoint.Open(t.TempDir(), row.options(n))
			require.Equal(t, row.works(n), err == nil, "%s of %d: %v", name, n, err)
			if err != nil {
				continue
			}
			for step := range checkpoint.Step(3) {
				require.NoError(t, f.Save(t.Context(), step+1, checkpoint.Content{Metrics: map[string]float64{"loss": float64(step)}}), "%s of %d", name, n)
			}
			require.NoError(t, f.Close())
		}
	}
}

func positive(n int) bool { return n > 0 }

func keep(rule func(n int) checkpoint.Retention) func(n int) checkpoint.Options {
	return func(n int) checkpoint.Options { return checkpoint.Options{Keep: []checkpoint.Retention{rule(n)}} }
}
