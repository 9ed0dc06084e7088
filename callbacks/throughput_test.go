package callbacks_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

func slowBatch(_ context.Context, s int, b sized) (int, loop.Logs, error) {
	time.Sleep(time.Duration(len(b)) * 10 * time.Millisecond)
	return s + 1, loop.Logs{}, nil
}

func batchesOf(sizes ...int) loop.Data[sized] {
	return func(yield func(sized, error) bool) {
		for _, n := range sizes {
			if !yield(make(sized, n), nil) {
				return
			}
		}
	}
}

func TestB40_throughputOfSamplesAndSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New(loop.On(loop.EachStep, loop.StepFunc(slowBatch)), callbacks.LogThroughput[int, sized](loop.Every(loop.Steps(2))))
		for range 2 { // each run starts a new measurement
			result, err := l.Run(t.Context(), 0, batchesOf(1, 3, 2, 2, 10, 30, 5))
			require.NoError(t, err)
			at, steps, err := result.History.Series("steps_per_second")
			require.NoError(t, err)
			_, samples, err := result.History.Series("metrics.samples_per_second")
			require.NoError(t, err)
			require.Len(t, at, 3)
			require.EqualValues(t, 2, at[0].Steps)
			require.InDeltaSlice(t, []float64{2 / 0.04, 2 / 0.04, 2 / 0.4}, steps, 1e-9)
			require.InDeltaSlice(t, []float64{100, 100, 100}, samples, 1e-9)
			time.Sleep(time.Hour)
		}
	})
}

// Runs of one loop at the same time must not measure each other.
func TestLogThroughput_severalRunsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loop.New(loop.On(loop.EachStep, loop.StepFunc(slowBatch)), callbacks.LogThroughput[int, sized](loop.EachStep))
		var runs sync.WaitGroup
		for n := 1; n <= 4; n++ {
			runs.Go(func() {
				result, err := l.Run(t.Context(), 0, batchesOf(n, n, n))
				if err != nil {
					t.Error(err)
					return
				}
				_, rates, err := result.History.Series("steps_per_second")
				if err != nil || len(rates) != 3 {
					t.Error(rates, err)
				}
				for _, rate := range rates {
					if d := rate - 100/float64(n); d > 1e-9 || d < -1e-9 {
						t.Errorf("run %d: %v", n, rates)
					}
				}
			})
		}
		runs.Wait()
	})
}

func TestThroughput_byHand(t *testing.T) {
	var rate callbacks.Throughput
	require.Zero(t, rate.Logs(loop.Elapsed{Steps: 5, Samples: 10, Time: time.Second}).Len(), "the first begins")
	require.Zero(t, rate.Logs(loop.Elapsed{Steps: 6, Samples: 20, Time: time.Second}).Len(), "no time has passed")
	logs := rate.Logs(loop.Elapsed{Steps: 9, Samples: 50, Time: 3 * time.Second})
	steps, err := logs.Float("steps_per_second")
	require.NoError(t, err)
	samples, err := logs.Float("samples_per_second")
	require.NoError(t, err)
	require.Equal(t, []float64{2, 20}, []float64{steps, samples})
}
