package managed_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
)

// A state reports that a step is being compiled for it, and since when, also if the compilation fails, and only while
// it lasts.
func TestCompilingSince(t *testing.T) {
	state, begin := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd())), time.Now()
	told, fails := 0, true
	step := stepper(t, managed.TrainStep(func(b *managed.Builder) {
		since, ok := state.CompilingSince()
		require.True(t, ok)
		require.False(t, since.Before(begin))
		if told++; fails {
			panic(errors.New("not yet"))
		}
		slope(b)
	}))
	for range 3 {
		_, ok := state.CompilingSince()
		require.False(t, ok)
		_, _, err := step.Step(t.Context(), state, ones(t, 2))
		require.Equal(t, fails, err != nil)
		fails = false
	}
	require.Equal(t, 2, told, "the third step is compiled already")
	_, ok := state.CompilingSince()
	require.False(t, ok)
}
