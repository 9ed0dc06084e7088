package managed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
)

// ofJob is a strategy of several processes.
type ofJob struct {
	strategies.Strategy
	job loop.Job
}

func (o ofJob) Job() loop.Job { return o.job }

type pair struct{}

func (pair) Rank() int           { return 1 }
func (pair) Size() int           { return 2 }
func (pair) Agree([]int64) error { return nil }

func TestState_job(t *testing.T) {
	on := strategies.Jit(plugintest.CPU(t))
	alone, err := managed.New(on)
	require.NoError(t, err)
	require.Nil(t, alone.Job())
	one, err := managed.New(ofJob{on, pair{}})
	require.NoError(t, err)
	require.Equal(t, pair{}, one.Job())
	var none *managed.State
	require.Nil(t, none.Job())
}
