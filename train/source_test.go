package train_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
)

// Tests and predictions end as promptly as a run if their data blocks without end.
func TestR24_aSourceThatBlocksForEver(t *testing.T) {
	home := errors.New("home")
	step := loop.StepFunc[int, int](func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Metric("n", float64(s))
		return s + 1, logs, nil
	})
	for name, run := range map[string]func(context.Context, loop.Data[int]) error{
		"a test": func(ctx context.Context, data loop.Data[int]) error {
			_, _, err := train.Test[int, int]("test", step, data).Run(ctx, 0)
			return err
		},
		"a test in a loop": func(ctx context.Context, data loop.Data[int]) error {
			l := train.Loop[int, int]{Step: step, Epoch: loop.Steps(1), Tests: []loop.Evaluation[int, int]{loop.Evaluate[int, int]("test", step, data)}}
			_, err := l.Run(ctx, 0, loop.Data[int](func(yield func(int, error) bool) { yield(1, nil) }))
			return err
		},
		"predictions": func(ctx context.Context, data loop.Data[int]) error {
			predict := train.Predict[int, int, int]{Step: func(_ context.Context, s, b int) (int, error) { return s + b, nil }}
			all, err := gather(predict.All(ctx, 0, data))
			require.Len(t, all, 3)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				let := make(chan struct{})
				begin := time.Now()
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, home)
				defer cancel()
				err := run(ctx, func(yield func(int, error) bool) {
					for i := range 3 {
						if !yield(i, nil) {
							return
						}
					}
					<-let
				})
				require.ErrorIs(t, err, home)
				require.ErrorIs(t, err, loop.ErrSourceLeft)
				require.LessOrEqual(t, time.Since(begin), time.Minute+time.Second)
				close(let)
				synctest.Wait()
			})
		})
	}
}
