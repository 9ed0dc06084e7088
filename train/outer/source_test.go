package outer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// The data of inner loops ends as promptly as a run does where it blocks for ever.
func TestR24_aSourceThatBlocksForEver(t *testing.T) {
	home := errors.New("home")
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		begin := time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, home)
		defer cancel()
		training := toy{Train: counting, TotalSteps: 10, LoopSteps: 2, Data: func(context.Context, loop.Elapsed) (loop.Data[int], error) {
			return func(yield func(int, error) bool) {
				for i := range 3 {
					if !yield(i, nil) {
						return
					}
				}
				<-let
			}, nil
		}}
		result, err := training.Run(ctx, 0)
		require.Equal(t, 3, result.State)
		require.ErrorIs(t, err, home)
		require.ErrorIs(t, err, loop.ErrSourceLeft)
		require.LessOrEqual(t, time.Since(begin), time.Minute+time.Second)
		close(let)
		synctest.Wait()
	})
}
