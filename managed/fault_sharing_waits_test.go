package managed_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// A wait for a state ends with its context. A use from within a build function returns an error instead of waiting for
// itself.
//
//lazo:race
func TestF46_waitsEnd(t *testing.T) {
	r := plugintest.CPU(t)
	eager := strategies.Eager(r)
	for _, on := range []strategies.Strategy{strategies.Jit(r), eager} {
		state, err := managed.New(on, managed.WithOptimizer(sgd()))
		require.NoError(t, err)
		building, built := make(chan struct{}), make(chan struct{})
		var inside []error
		var once sync.Once
		slow := stepper(t, managed.TestStep(func(b *managed.Builder) {
			once.Do(func() {
				_, err := state.LearningRate()
				_, resetErr := managed.Reset(t.Context(), state)
				inside = append(inside, err, resetErr)
				_ = state.Summary()
				close(building)
				<-built
			})
			regression(b)
		}))
		step := stepper(t, managed.TrainStep(regression))
		batch := firstBatch(t)
		_, _, err = step.Step(t.Context(), state, batch)
		require.NoError(t, err)
		done := make(chan error)
		go func() { _, _, err := slow.Step(context.Background(), state, batch); done <- err }()
		select {
		case <-building:
		case <-time.After(30 * time.Second):
			t.Fatal("what is asked from inside of a step's function waits for itself")
		}
		if on != eager { // where each step builds
			_, _, err = step.Step(t.Context(), state, batch) // a training does not wait for it
			require.NoError(t, err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(10*time.Millisecond, func() { cancel(errBroken) })
		require.ErrorIs(t, stepper(t, managed.TestStep(hiddenFour)).Prepare(ctx, state, batch), errBroken, "two build")
		close(built)
		require.NoError(t, <-done)
		require.Len(t, inside, 2)
		for _, err := range inside {
			require.ErrorIs(t, err, xla.ErrBusy)
			require.ErrorContains(t, err, "the function of a step that is being built cannot wait for the state")
		}
		require.NoError(t, state.Close())
		require.False(t, strings.Contains(fmt.Sprint(state.Names()), "hidden"))
	}
}
