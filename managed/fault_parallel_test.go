package managed_test

import (
	"errors"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// F14 on four devices: a model that panics, at the first shape of batch or at a later one, and a batch that cannot be
// divided leave the state unchanged, and the continued training is bit-identical to an undisturbed one.
func TestF14_parallelPanics(t *testing.T) {
	r := plugintest.Devices(t, 4)
	boom := errors.New("boom")
	set := line(t, 32)
	full, half, odd := first(t, set.Batches(16)), first(t, set.Batches(8)), first(t, set.Batches(6))
	cases := 0
	for _, row := range []struct {
		name    string
		options strategies.Parallel
	}{
		{"whole on each device", strategies.Parallel{}},
		{"divided", strategies.Parallel{Shard: strategies.FullyShard(4, 4)}},
	} {
		state := parallelState(t, r, row.options)
		undisturbed := parallelState(t, r, row.options)
		broken := any(nil) // what the model panics with
		step := stepper(t, managed.TrainStep(func(b *managed.Builder) {
			hiddenFour(b)
			if broken != nil {
				panic(broken)
			}
		}))
		made := func(state *managed.State, batches ...data.Batch) {
			for _, b := range batches {
				_, _, err := step.Step(t.Context(), state, b)
				require.NoError(t, err)
			}
		}
		fails := func(batch data.Batch, want string) {
			known := len(state.Names()) > 0
			before := bits(t, state)
			_, _, err := step.Step(t.Context(), state, batch)
			require.ErrorContains(t, err, want, row.name)
			if known {
				require.Equal(t, before, bits(t, state), row.name)
			}
			cases++
		}
		for _, v := range []any{boom, "text", 7} { // before there is any value
			broken = v
			fails(full, "fault_parallel_test.go:")
		}
		broken = nil
		made(state, full, full)
		for _, v := range []any{boom, "text", 7} { // another shape of batch
			broken = v
			fails(half, "fault_parallel_test.go:")
		}
		broken = nil
		fails(odd, "a batch of 6 examples over 4 devices")
		made(state, half, full)
		made(undisturbed, full, full, half, full)
		require.Equal(t, bits(t, undisturbed), bits(t, state), row.name)
	}
	t.Logf("F14: %d failures on four devices, state whole and divided: 0 changed values, the same bits afterwards", cases)
}

// F17 on four devices: a step that needs more memory than there is leaves every part of the state alone.
func TestF17_parallelOutOfMemory(t *testing.T) {
	r := plugintest.Devices(t, 4)
	batch := first(t, line(t, 16).Batches(16))
	failed := 0
	for _, options := range []strategies.Parallel{{}, {Shard: strategies.FullyShard(4, 4)}} {
		state := parallelState(t, r, options)
		good := stepper(t, managed.TrainStep(hiddenFour))
		bad := stepper(t, managed.TrainStep(func(b *managed.Builder) {
			hiddenFour(b)
			column := graph.BroadcastToDims(graph.ReduceAllMax(b.Field("x")), 1<<21, 1)
			square := graph.Dot(column, graph.Reshape(column, 1, 1<<21)).Product()
			b.Metric("huge", graph.ReduceAllMax(graph.Dot(square, column).Product()))
		}))
		_, _, err := good.Step(t.Context(), state, batch)
		require.NoError(t, err)
		before := bits(t, state)
		for range 5 {
			_, _, err := bad.Step(t.Context(), state, batch)
			require.ErrorIs(t, err, xla.ErrOutOfMemory)
			require.NotErrorIs(t, err, strategies.ErrStateLost)
			require.Equal(t, before, bits(t, state))
			failed++
		}
		_, _, err = good.Step(t.Context(), state, batch)
		require.NoError(t, err)
		require.NotEqual(t, before, bits(t, state))
	}
	t.Logf("F17: %d steps on four devices that asked for 16 TiB: 0 changed values, the next step is made", failed)
}
