package managed_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
)

// wider is a test step that brings two further variables in, one of them drawn.
func wider(b *managed.Builder) {
	h := layers.Dense(b.Scope().In("wide"), b.Field("x"), true, 4)
	b.Metric("mean", h)
	b.Mean("running", h)
}

// small has what a state of a few variables can hold: parameters, random numbers, a metric.
func small(b *managed.Builder) {
	regression(b)
	noise := b.Scope().RandomNormal(b.Graph(), b.Field("x").Shape())
	b.Mean("noise", noise)
}

// F14: each call of a strategy that a method of the state makes fails once. The state is that of before or of after,
// nothing is left on the device, and what follows computes the bits that it computes without the failure.
func TestF14_methodsFailAtCallK(t *testing.T) {
	r := plugintest.CPU(t)
	set := line(t, 64)
	total := 0
	type session struct {
		state    *managed.State
		from, to *failingStrategy
		clone    *managed.State
	}
	for _, row := range []struct {
		name string
		do   func(s *session) error
	}{
		{"prepare", func(s *session) error {
			step := managed.TestStep(wider)
			zero, err := managed.ZeroBatch(set.Fields()...)
			require.NoError(t, err)
			return errors.Join(step.Prepare(t.Context(), s.state, zero), step.Close())
		}},
		{"move", func(s *session) error { return s.state.MoveTo(t.Context(), s.to) }},
		{"clone", func(s *session) (err error) {
			if s.clone != nil { // made by the second try already
				return nil
			}
			s.clone, err = s.state.Clone(t.Context(), s.to)
			return err
		}},
		{"set value", func(s *session) error {
			return s.state.SetValue("/dense/dense/biases", tensors.FromValue([]float32{0.5}))
		}},
		{"summary of values", func(s *session) error {
			_, err := s.state.SummaryOfValues(t.Context())
			return err
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			// attempt does it twice if it fails, and two steps more; it gives the values of before it, after it, and at the end.
			attempt := func(t *testing.T, atFrom, atTo int) (before, after, end map[string][]byte, s *session, failed bool) {
				s = &session{from: &failingStrategy{Strategy: strategies.Jit(r), at: -1}, to: &failingStrategy{Strategy: strategies.Jit(r), at: atTo}}
				var err error
				s.state, err = managed.New(s.from, managed.WithOptimizer(sgd()))
				require.NoError(t, err)
				step := managed.TrainStep(small)
				turns(t, step, s.state, set, 0, 2)
				require.NoError(t, s.state.Wait())
				before = bits(t, s.state)
				s.from.calls, s.from.at = 0, atFrom
				err = row.do(s)
				counted := [2]int{s.from.calls, s.to.calls}
				s.from.at, s.to.at = -1, -1
				after = bits(t, s.state)
				if failed = err != nil; failed {
					require.ErrorIs(t, err, errInjected)
					require.NoError(t, row.do(s), "the second try")
				}
				turns(t, step, s.state, set, 2, 4)
				end = bits(t, s.state)
				if s.clone != nil {
					turns(t, step, s.clone, set, 2, 4)
					require.Equal(t, end, bits(t, s.clone))
					require.NoError(t, s.clone.Close())
				}
				require.NoError(t, errors.Join(step.Close(), s.state.Close()))
				s.from.calls, s.to.calls = counted[0], counted[1]
				return before, after, end, s, failed
			}
			before, done, end, count, failed := attempt(t, -1, -1)
			require.False(t, failed)
			live := pjrt.Live()
			for which, calls := range []int{count.from.calls, count.to.calls} {
				for k := 1; k <= calls; k++ {
					at := [2]int{-1, -1}
					at[which] = k
					_, now, endNow, s, failed := attempt(t, at[0], at[1])
					// Unreadable logs that were dropped are no error of the move.
					require.True(t, failed || row.name == "move" && fmt.Sprint(now) == fmt.Sprint(done), "call %d", k)
					require.Contains(t, []map[string][]byte{before, done}, now, "call %d: %s%s", k, s.from.failed, s.to.failed)
					require.Equal(t, end, endNow, "call %d: %s%s", k, s.from.failed, s.to.failed)
					after := pjrt.Live()
					after.Collected = live.Collected
					require.Equal(t, live, after, "objects left after call %d: %s%s", k, s.from.failed, s.to.failed)
					total++
				}
			}
			t.Logf("F14: %s: %d and %d calls of the two strategies failed one by one", row.name, count.from.calls, count.to.calls)
		})
	}
	t.Logf("F14: %d failures: each time the state of before or after, the same bits afterwards, 0 objects left", total)
}

// F14: a model function that panics when a step is prepared, or with given values that do not fit, leaves the state
// alone.
func TestF14_prepareWithAPanic(t *testing.T) {
	r := plugintest.CPU(t)
	state := newState(t, r, managed.WithOptimizer(adam()))
	step := stepper(t, managed.TrainStep(everything))
	set := line(t, 64)
	turns(t, step, state, set, 0, 1)
	before := bits(t, state)
	batch := first(t, set.Batches(16))
	for _, v := range []any{"a string", 7, errInjected, context.Canceled} {
		broken := managed.TestStep(func(b *managed.Builder) {
			wider(b)
			panic(v)
		})
		err := broken.Prepare(t.Context(), state, batch)
		require.ErrorContains(t, err, "managed: prepare the test step: ")
		require.ErrorContains(t, err, "state_fault_test.go:")
		require.Equal(t, before, bits(t, state))
		require.NoError(t, broken.Close())
	}
	t.Log("F14: 4 panics while a step was prepared: 0 values changed")
}
