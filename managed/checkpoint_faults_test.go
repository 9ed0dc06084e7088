package managed_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
)

// restarts is the number of starts of F21's run.
var restarts = 8

// Starting again and again does not make checkpoints grow: GoMLX's got four variables with each start.
func TestF21_restartsOfAState(t *testing.T) {
	r := plugintest.CPU(t) // is closed last
	s := newSession(t)
	f := folder(t, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1}}})
	var sizes []int // of the state; the rows of the history are bounded, the digits of their steps and times are not
	var first, last *checkpoint.Checkpoint
	for i := range restarts {
		result := s.run(strategies.Jit(r), f, 40+3*int64(i), loop.Thin(20))
		_, tests, err := result.History.Series("loss_test")
		require.NoError(t, err)
		require.LessOrEqual(t, result.History.Len(), 20+len(tests), "callbacks follow the tests: their rows stay")
		c, err := f.Newest(t.Context())
		require.NoError(t, err)
		if last = c; first == nil {
			first = c
		}
		size := 0
		for _, tensor := range c.Tensors {
			if tensor.Name != "loop.history" {
				size += len(tensor.Data)
			}
		}
		sizes = append(sizes, size)
		require.Len(t, c.Tensors, len(first.Tensors))
		require.Equal(t, sizes[0], size, "restart %d", i)
		require.Less(t, float64(c.Bytes), 1.5*float64(first.Bytes))
	}
	t.Logf("F21: %d restarts: %d tensors of %d bytes all along; with 20 rows of history from %d to %d bytes",
		restarts, len(first.Tensors), sizes[0], first.Bytes, last.Bytes)
}

// poisoned are batches of which the k-th, from 1, has NaN.
func poisoned(t *testing.T, k int) loop.Data[data.Batch] {
	set := line(t, 16)
	nan := make([]float32, 16)
	for i := range nan {
		nan[i] = float32(math.NaN())
	}
	bad, err := data.New(data.X(nan, 16, 1), data.Y(nan, 16, 1))
	require.NoError(t, err)
	return func(yield func(data.Batch, error) bool) {
		for i := 1; ; i++ {
			from := set
			if i == k {
				from = bad
			}
			for b, err := range from.Batches(16).All() {
				if !yield(b, err) {
					return
				}
			}
		}
	}
}

// Whatever becomes of a NaN, no checkpoint has one.
func TestF12_noCheckpointOfNaN(t *testing.T) {
	r := plugintest.CPU(t)
	const until = 12
	checked := 0
	for _, policy := range []callbacks.Recovery{{}, {Limit: 2}, {Limit: 1, Copies: loop.Every(loop.Steps(3))}} {
		for _, k := range []int{1, 5, until} {
			f := folder(t, checkpoint.Options{})
			state := newState(t, r, managed.WithOptimizer(sgd()))
			step := stepper(t, managed.TrainStep(regression))
			require.NoError(t, step.Prepare(t.Context(), state, first(t, line(t, 16).Batches(16))), "so that there is a state to go back to")
			result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, poisoned(t, k), loop.Until(loop.Steps(until)), callbacks.NonFinite(policy),
				f.Resume(checkpoint.Options{When: loop.EachStep}))
			want := int64(until)
			if policy.String() == "fail run" {
				require.ErrorIs(t, err, loop.ErrNonFinite)
				want = int64(k - 1)
			} else {
				require.NoError(t, err, "%v at %d", policy, k)
				require.EqualValues(t, until, result.Elapsed.Steps)
			}
			list, err := f.List(t.Context())
			require.NoError(t, err)
			for _, i := range list {
				c, err := f.Load(t.Context(), i.Step)
				require.NoError(t, err)
				for _, tensor := range c.Tensors {
					if tensor.DType != safetensors.F32 {
						continue
					}
					values, err := safetensors.Values[float32](tensor.Data)
					require.NoError(t, err)
					for _, x := range values {
						require.False(t, math.IsNaN(float64(x)) || math.IsInf(float64(x), 0), "%v at %d: step %d: %s", policy, k, i.Step, tensor.Name)
						checked++
					}
				}
			}
			if want > 0 {
				require.NotEmpty(t, list, "%v at %d", policy, k)
				require.LessOrEqual(t, int64(list[len(list)-1].Step), want)
			}
		}
	}
	t.Logf("F12: NaN in a batch, 3 policies, a save after each step: 0 of %d saved parameters are not finite", checked)
}
