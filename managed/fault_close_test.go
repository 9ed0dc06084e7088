package managed_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// F41: everything of a state and a step after Close, twice, and while others use it.
//
//lazo:race
func TestF41_useAfterClose(t *testing.T) {
	jit := func(r *xla.Runtime) strategies.Strategy { return strategies.Jit(r) }
	parallel := func(r *xla.Runtime) strategies.Strategy { return onFour(t, r, strategies.Parallel{}) }
	useAfterClose(t, jit, nil)
	useAfterClose(t, parallel, []xla.Option{xla.ClientOption("cpu_device_count", 4)})
}

func useAfterClose(t *testing.T, strategy func(*xla.Runtime) strategies.Strategy, options []xla.Option) {
	t.Helper()
	made := func(r *xla.Runtime) *managed.State {
		state, err := managed.New(strategy(r), managed.WithOptimizer(sgd()))
		require.NoError(t, err)
		return state
	}
	r := plugintest.CPU(t, options...)
	batch := first(t, line(t, 16).Batches(16))
	state := made(r)
	step := managed.TrainStep(regression)
	_, logs, err := step.Step(t.Context(), state, batch)
	require.NoError(t, err)
	require.NoError(t, errors.Join(state.Close(), state.Close(), step.Close(), step.Close()))
	_, err = logs.Float("loss")
	require.NoError(t, err, "what was logged can be read")
	rows := map[string]func() error{
		"step":              func() error { _, _, err := step.Step(t.Context(), state, batch); return err },
		"block":             func() error { _, _, err := step.StepBlock(t.Context(), state, []data.Batch{batch}); return err },
		"prepare":           func() error { return step.Prepare(t.Context(), state, batch) },
		"value":             func() error { _, err := state.Value("/dense/dense/weights"); return err },
		"set value":         func() error { return state.SetValue("/dense/dense/biases", tensors.FromValue([]float32{0.5})) },
		"snapshot":          func() error { _, err := state.Snapshot(t.Context()); return err },
		"move":              func() error { return state.MoveTo(t.Context(), strategy(r)) },
		"clone":             func() error { _, err := state.Clone(t.Context(), strategy(r)); return err },
		"reset of metrics":  func() error { _, err := managed.Reset(t.Context(), state); return err },
		"wait":              state.Wait,
		"learning rate":     func() error { _, err := state.LearningRate(); return err },
		"set learning rate": func() error { return state.SetLearningRate(1) },
	}
	for name, f := range rows {
		require.ErrorIs(t, f(), managed.ErrClosed, name)
	}
	// A step serves other states, also after its Close.
	other := made(r)
	_, _, err = step.Step(t.Context(), other, batch)
	require.NoError(t, errors.Join(err, step.Close(), other.Close()))

	const rounds = 20
	results := map[string]int{}
	for range rounds {
		r := plugintest.CPU(t, options...)
		state := made(r)
		step := managed.TrainStep(regression)
		_, _, err = step.Step(t.Context(), state, batch)
		require.NoError(t, err)
		begin := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			<-begin
			if err := r.Close(); err != nil {
				t.Errorf("%v", err)
			}
		})
		close(begin)
		for range 50 {
			_, _, err := step.Step(t.Context(), state, batch)
			switch {
			case err == nil:
				results["done"]++
			case errors.Is(err, xla.ErrClosed) || errors.Is(err, strategies.ErrStateLost):
				results["closed"]++
			default:
				t.Errorf("%v", err)
			}
		}
		wg.Wait()
	}
	require.Positive(t, results["closed"])
	t.Logf("F41: %v: %d calls after Close: ErrClosed each; %d runtimes closed under a training: %v, no crash", strategy(r), len(rows), rounds, results)
}

// Reading, moving or closing after the runtime's Close returns an error of one line.
func TestF41_theRuntimeIsClosedFirst(t *testing.T) {
	for _, on := range []struct {
		strategy func(*xla.Runtime) strategies.Strategy
		options  []xla.Option
	}{
		{func(r *xla.Runtime) strategies.Strategy { return strategies.Jit(r) }, nil},
		{func(r *xla.Runtime) strategies.Strategy { return onFour(t, r, strategies.Parallel{}) }, []xla.Option{xla.ClientOption("cpu_device_count", 4)}},
	} {
		r, err := xla.Open(t.Context(), xla.CPU, on.options...)
		require.NoError(t, err)
		other := plugintest.CPU(t, on.options...)
		state, err := managed.New(on.strategy(r), managed.WithOptimizer(sgd()))
		require.NoError(t, err)
		step, test := managed.TrainStep(regression), managed.TestStep(regression)
		for _, size := range []int{4, 8, 16} { // a program for each
			_, _, err = step.Step(t.Context(), state, first(t, line(t, size).Batches(size)))
			require.NoError(t, err)
			_, _, err = test.Step(t.Context(), state, first(t, line(t, size).Batches(size)))
			require.NoError(t, err)
		}
		folder, err := checkpoint.Open(t.TempDir(), checkpoint.Options{})
		require.NoError(t, err)
		require.NoError(t, r.Close())
		rows := []struct {
			name string
			call func() error
		}{
			{"value", func() error { _, err := state.Value("/dense/dense/weights"); return err }},
			{"values", func() error { _, err := state.Values("/dense/dense/weights"); return err }},
			{"learning rate", func() error { _, err := state.LearningRate(); return err }},
			{"snapshot", func() error { _, err := state.Snapshot(t.Context()); return err }},
			{"save", func() error {
				content, err := state.Content(t.Context())
				if err == nil {
					err = folder.Save(t.Context(), 1, content)
				}
				return err
			}},
			{"clone", func() error { _, err := state.Clone(t.Context(), on.strategy(other)); return err }},
			{"move", func() error { return state.MoveTo(t.Context(), on.strategy(other)) }},
			{"close of a step", step.Close},
			{"close of a test", test.Close},
			{"close of the state", state.Close},
		}
		for _, row := range rows {
			err := row.call()
			require.ErrorIs(t, err, xla.ErrClosed, row.name)
			require.ErrorContains(t, err, "the runtime was closed before it: close states and models first", row.name)
			require.NotContains(t, err.Error(), "\n", row.name)
		}
		require.NoError(t, errors.Join(step.Close(), test.Close(), state.Close()), "and a second Close does nothing")
		require.NoError(t, folder.Close())
	}
}
