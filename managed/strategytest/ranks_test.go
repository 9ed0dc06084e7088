package strategytest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/internal/ranks"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// Each rank is a process; they exchange by MPI.
func TestRanks(t *testing.T) {
	for _, n := range rankCounts {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			if !ranks.Over(t, n) {
				return
			}
			job, err := dist.Join(t.Context())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, job.Close()) })
			for _, form := range []struct {
				name    string
				options []strategies.ParallelOption
			}{
				{"whole", nil},
				{"sharded", []strategies.ParallelOption{strategies.ShardState(strategies.FullyShard(n, 2))}},
			} {
				t.Run(form.name, func(t *testing.T) {
					Run(t, func(t *testing.T) strategies.Strategy {
						s, err := strategies.DataParallel(plugintest.CPU(t, xla.Across(job)), form.options...)
						require.NoError(t, err)
						return s
					})
				})
			}
		})
	}
}
