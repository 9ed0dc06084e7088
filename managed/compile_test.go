package managed_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/xla"
)

// A second state of the same model, of another seed too, compiles nothing, and computes what it would have alone.
//
//lazo:norace
func TestCompile_aSecondStateCompilesNothing(t *testing.T) {
	train := func(t *testing.T, r *xla.Runtime, seed int64, open func(close func() error)) string {
		state := newState(t, r, managed.WithOptimizer(adam()), managed.WithSeed(seed))
		step, test := managed.TrainStep(regression), managed.TestStep(regression)
		set := line(t, 64)
		turns(t, step, state, set, 0, 4)
		turns(t, test, state, set, 0, 1)
		v, err := state.Value(state.Names()[0])
		require.NoError(t, err)
		open(func() error { return errors.Join(step.Close(), test.Close()) })
		return v.GoStr()
	}
	for name, stay := range map[string]bool{"side by side": true, "one after the other": false} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			r := plugintest.Uncached(t, xla.Log(slog.New(slog.NewTextHandler(&log, nil))))
			for seed := range int64(3) {
				end := func(closeSteps func() error) {
					if stay {
						t.Cleanup(func() { require.NoError(t, closeSteps()) })
						return
					}
					require.NoError(t, closeSteps())
				}
				got := train(t, r, seed, end)
				require.Equal(t, train(t, plugintest.CPU(t), seed, end), got)
				require.Equal(t, 2, strings.Count(log.String(), "cache=off"), "after seed %d", seed)
			}
			t.Log("3 states, 6 programs: 2 compilations")
		})
	}
}
