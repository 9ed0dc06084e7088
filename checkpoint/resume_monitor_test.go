package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// A callback that follows an entry continues from its earlier values, even if the history dropped other rows: the
// resumed run stops where the uninterrupted one does.
func TestResume_callbacksKnowTheirValues(t *testing.T) {
	for name, keep := range map[string][]loop.Option{
		"all":   nil,
		"keep":  {loop.Keep(loop.Every(loop.Steps(7)))},
		"never": {loop.Keep(loop.Never)},
		"thin":  {loop.Thin(2)},
	} {
		t.Run(name, func(t *testing.T) {
			stopped := func(kills ...int64) (int64, string) {
				f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
				kills = append(kills, 1000)
				for _, kill := range kills {
					step := loop.StepFunc(func(_ context.Context, c *counter, _ int) (*counter, loop.Logs, error) {
						c.Weight++
						var logs loop.Logs
						logs.Metric("m", c.Weight)
						if int64(c.Weight) == kill {
							return c, logs, errors.New("killed")
						}
						return c, logs, nil
					})
					test := loop.StepFunc(func(_ context.Context, c *counter, _ int) (*counter, loop.Logs, error) {
						var logs loop.Logs
						loss := c.Weight
						if c.Weight == 4 {
							loss = 1 // the best, and it stays so
						}
						logs.Loss("loss", loss)
						return c, logs, nil
					})
					l := loop.New(loop.On(loop.EachStep, step), loop.Evaluate("test", test, batchesTo(1)).On(loop.Every(loop.Steps(2))))
					result, err := l.Run(t.Context(), &counter{}, batchesTo(1000), append([]loop.Option{f.Resume(checkpoint.Options{When: loop.Every(loop.Steps(5))}),
						loop.Until(loop.Steps(100)), callbacks.StopEarly("loss_test", callbacks.Evaluations(6))}, keep...)...)
					if kill == 1000 {
						require.NoError(t, err)
						return result.Elapsed.Steps, fmt.Sprint(result.Stop)
					}
					require.ErrorContains(t, err, "killed")
				}
				panic("not reached")
			}
			steps, why := stopped()
			require.EqualValues(t, 16, steps)
			for _, kills := range [][]int64{{6}, {11}, {14}, {7, 12, 16}} {
				again, reason := stopped(kills...)
				require.Equal(t, steps, again, "killed at %d", kills)
				require.Equal(t, why, reason)
			}
		})
	}
}

func batchesTo(n int) loop.Data[int] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
	}
}
