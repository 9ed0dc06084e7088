package managed_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

func folder(t *testing.T, options checkpoint.Options) *checkpoint.Folder {
	t.Helper()
	f, err := checkpoint.Open(t.TempDir(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func TestRestoreRefusesAnotherModel(t *testing.T) {
	r := plugintest.CPU(t)
	set := line(t, 64)
	model := func(name string, width int) *managed.Stepper {
		return stepper(t, managed.TrainStep(func(b *managed.Builder) {
			h := layers.Dense(b.Scope().In("%s", name), b.Field("x"), true, width)
			b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), layers.Dense(b.Scope().In("out"), h, true, 1))))
		}))
	}
	saved := newState(t, r, managed.WithOptimizer(sgd()))
	steps(t, model("h", 4), saved, set, 0, 3)
	f := folder(t, checkpoint.Options{})
	content, err := saved.Content(t.Context())
	require.NoError(t, err)
	require.NoError(t, f.Save(t.Context(), 3, content))
	load := func() *checkpoint.Checkpoint {
		c, err := f.Newest(t.Context())
		require.NoError(t, err)
		return c
	}
	for _, row := range []struct {
		name      string
		step      *managed.Stepper
		optimizer *optim.Optimizer
		want      string
	}{
		{"wider", model("h", 5), sgd(), "" +
			"  /h/dense/biases: saved as float32[4], the model has float32[5]\n" +
			"  /h/dense/weights: saved as float32[1 4], the model has float32[1 5]\n" +
			"  /out/dense/weights: saved as float32[4 1], the model has float32[5 1]\n"},
		{"renamed", model("g", 4), sgd(), "" +
			"  /g/dense/biases: not in the checkpoint, the model has float32[4]\n" +
			"  /g/dense/weights: not in the checkpoint, the model has float32[1 4]\n" +
			"  /h/dense/biases: saved as float32[4], not in the model\n" +
			"  /h/dense/weights: saved as float32[1 4], not in the model\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			want := "the model is not that of the checkpoint of step 3:\n" + row.want +
				"build the model that was saved, or take the tensors that fit: by State.Transfer, or into a flaxlike.Model by LoadSome from a file of lazo ckpt export"
			state := newState(t, r, managed.WithOptimizer(row.optimizer))
			require.NoError(t, state.Restore(t.Context(), load()), "a new state has no variables to compare")
			names := state.Names()
			err := row.step.Prepare(t.Context(), state, first(t, set.Batches(16)))
			var mismatch *managed.MismatchError
			require.ErrorAs(t, err, &mismatch)
			require.Equal(t, want, mismatch.Error())
			require.Equal(t, names, state.Names(), "those of the checkpoint")

			old := newState(t, r, managed.WithOptimizer(row.optimizer))
			steps(t, row.step, old, set, 0, 2)
			before := bits(t, old)
			err = old.Restore(t.Context(), load())
			require.ErrorAs(t, err, &mismatch)
			require.Equal(t, want, mismatch.Error())
			require.Equal(t, before, bits(t, old), "it is as it was")
		})
	}
	t.Run("another optimizer", func(t *testing.T) {
		state := newState(t, r, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
		require.NoError(t, state.Restore(t.Context(), load()))
		err := model("h", 4).Prepare(t.Context(), state, first(t, set.Batches(16)))
		var mismatch *managed.MismatchError
		require.ErrorAs(t, err, &mismatch)
		require.ErrorContains(t, err, "not in the checkpoint, the model has")
	})
	t.Run("not of a state", func(t *testing.T) {
		g := folder(t, checkpoint.Options{})
		require.NoError(t, g.Save(t.Context(), 1, checkpoint.Content{}))
		c, err := g.Newest(t.Context())
		require.NoError(t, err)
		err = newState(t, r).Restore(t.Context(), c)
		require.ErrorIs(t, err, checkpoint.ErrNoSection)
		require.ErrorContains(t, err, "managed: restore: this is not a checkpoint of a managed.State (Transfer takes tensors of any checkpoint)")
	})
	t.Run("the same", func(t *testing.T) {
		for _, made := range []int{0, 2} { // steps of before
			state := newState(t, r, managed.WithOptimizer(sgd()))
			step := model("h", 4)
			steps(t, step, state, set, 0, made)
			require.NoError(t, state.Restore(t.Context(), load()))
			require.NoError(t, step.Prepare(t.Context(), state, first(t, set.Batches(16))))
			require.Equal(t, bits(t, saved), bits(t, state))
		}
	})
}

// Steps that were not made before the checkpoint bring in variables of their own, as a second network does, and metrics
// of a test; what no step has asked for is saved again.
func TestRestoreOfStepsThatCameLater(t *testing.T) {
	r := plugintest.CPU(t)
	set := line(t, 64)
	network := func(name string) *managed.Stepper {
		return stepper(t, managed.TrainStep(func(b *managed.Builder) {
			b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), layers.Dense(b.Scope().In("%s", name), b.Field("x"), true, 1))))
		}, managed.WithStepOptimizer(name+"_rule", optim.GoMLX(optimizer.Adam().Done())), managed.TrainOnly(func(v string) bool { return strings.HasPrefix(v, "/"+name+"/") })))
	}
	one, two := network("one"), network("two")
	test := stepper(t, managed.TestStep(func(b *managed.Builder) {
		predicted := layers.Dense(b.Scope().In("one"), b.Field("x"), true, 1)
		b.Mean("mean", predicted)
	}))
	f := folder(t, checkpoint.Options{})
	save := func(step checkpoint.Step, state *managed.State) {
		content, err := state.Content(t.Context())
		require.NoError(t, err)
		require.NoError(t, f.Save(t.Context(), step, content))
	}
	restored := func(step checkpoint.Step) *managed.State {
		c, err := f.Load(t.Context(), step)
		require.NoError(t, err)
		state := newState(t, r)
		require.NoError(t, state.Restore(t.Context(), c))
		return state
	}
	unbroken := newState(t, r)
	steps(t, one, unbroken, set, 0, 2)
	save(2, unbroken)
	steps(t, two, unbroken, set, 2, 4)
	save(4, unbroken)

	early := restored(2)
	require.NoError(t, test.Prepare(t.Context(), restored(4), first(t, set.Batches(16))))
	begins := restored(2) // with the other network
	steps(t, two, begins, set, 2, 4)
	require.NoError(t, one.Prepare(t.Context(), begins, first(t, set.Batches(16))))
	require.Equal(t, bits(t, unbroken), bits(t, begins))
	require.NoError(t, one.Prepare(t.Context(), early, first(t, set.Batches(16))))
	steps(t, two, early, set, 2, 4)
	require.Equal(t, bits(t, unbroken), bits(t, early))

	late := restored(4)
	require.NoError(t, one.Prepare(t.Context(), late, first(t, set.Batches(16))))
	save(5, late)
	again := restored(5)
	require.NoError(t, two.Prepare(t.Context(), again, first(t, set.Batches(16))))
	require.NoError(t, one.Prepare(t.Context(), again, first(t, set.Batches(16))))
	require.Equal(t, bits(t, unbroken), bits(t, again))
}

func TestTransfer(t *testing.T) {
	r := plugintest.CPU(t)
	set := line(t, 64)
	f := folder(t, checkpoint.Options{})
	weights := []float32{1, 2, 3}
	float8, err := safetensors.ParseDType("F8_E4M3")
	require.NoError(t, err)
	require.NoError(t, f.Save(t.Context(), 9, checkpoint.Content{Tensors: []checkpoint.Tensor{
		{Name: "backbone/kernel", DType: safetensors.F32, Dims: []int{1, 3}, Data: safetensors.Bytes(weights)},
		{Name: "other", DType: float8, Dims: []int{1}, Data: []byte{1}},
	}}))
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	step := stepper(t, managed.TrainStep(func(b *managed.Builder) {
		h := layers.Dense(b.Scope().In("encoder"), b.Field("x"), true, 3)
		b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), layers.Dense(b.Scope().In("head"), h, true, 1))))
	}))
	names := func(name string) string {
		if name == "/encoder/dense/weights" {
			return "backbone/kernel"
		}
		return ""
	}
	batch := first(t, set.Batches(16))
	for _, made := range []bool{false, true} { // whether the variables are there before
		state := newState(t, r, managed.WithOptimizer(sgd()))
		if made {
			require.NoError(t, step.Prepare(t.Context(), state, batch))
		}
		require.NoError(t, state.Transfer(t.Context(), c, names))
		require.NoError(t, step.Prepare(t.Context(), state, batch))
		require.Equal(t, weights, floats(t, state, "/encoder/dense/weights"))
		require.NotZero(t, floats(t, state, "/head/dense/weights")[0])
	}
	state := newState(t, r, managed.WithOptimizer(sgd()))
	require.NoError(t, state.Transfer(t.Context(), c, func(name string) string {
		return strings.Replace(names("/encoder/dense/weights"), "kernel", name[1:], 1)
	}))
	var mismatch *managed.MismatchError
	require.ErrorAs(t, step.Prepare(t.Context(), state, batch), &mismatch)
	require.ErrorContains(t, mismatch, `return "" for a variable that keeps, or draws, its own value`)
	require.NotContains(t, mismatch.Error(), "State.Transfer", "it would advise itself")
	require.ErrorContains(t, state.Transfer(t.Context(), c, nil), "the function of names is nil")
}

// Names of a transfer that take nothing are an error, whether the variables are there before or come with the next
// step.
func TestR07_aTransferThatTakesNothing(t *testing.T) {
	r := plugintest.CPU(t)
	f := folder(t, checkpoint.Options{})
	require.NoError(t, f.Save(t.Context(), 9, checkpoint.Content{Tensors: []checkpoint.Tensor{
		{Name: "backbone/kernel", DType: safetensors.F32, Dims: []int{1, 1}, Data: safetensors.Bytes([]float32{1})}}}))
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	step := stepper(t, managed.TrainStep(regression))
	batch := first(t, line(t, 16).Batches(16))
	names := func(name string) string {
		if name == "/encoder/dense/weights" { // the model says /dense/dense/weights
			return "backbone/kernel"
		}
		return ""
	}
	const want = `nothing to transfer: the function of names returns "" for each variable of the model, ["/dense/dense/weights" "/dense/dense/biases"]; the checkpoint has ["backbone/kernel"]`
	made, fresh := newState(t, r, managed.WithOptimizer(sgd())), newState(t, r, managed.WithOptimizer(sgd()))
	require.NoError(t, step.Prepare(t.Context(), made, batch))
	require.ErrorContains(t, made.Transfer(t.Context(), c, names), "managed: transfer: "+want)
	require.NoError(t, fresh.Transfer(t.Context(), c, names))
	require.ErrorContains(t, step.Prepare(t.Context(), fresh, batch), want)
}

// A rate that is set between the restore and the first step is the newer one.
func TestRateOfARestoredState(t *testing.T) {
	r := plugintest.CPU(t)
	set := line(t, 64)
	step := stepper(t, managed.TrainStep(regression))
	saved := newState(t, r, managed.WithOptimizer(sgd()))
	steps(t, step, saved, set, 0, 1)
	require.NoError(t, saved.SetLearningRate(0.25))
	content, err := saved.Content(t.Context())
	require.NoError(t, err)
	f := folder(t, checkpoint.Options{})
	require.NoError(t, f.Save(t.Context(), 1, content))
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	state := newState(t, r, managed.WithOptimizer(sgd()))
	require.NoError(t, state.SetLearningRate(0.75), "older than the restore")
	require.NoError(t, state.Restore(t.Context(), c))
	rate := func() float64 {
		x, err := state.LearningRate()
		require.NoError(t, err)
		return x
	}
	require.Equal(t, 0.25, rate())
	require.NoError(t, state.SetLearningRate(0.5))
	require.Equal(t, 0.5, rate())
	require.NoError(t, step.Prepare(t.Context(), state, first(t, set.Batches(16))))
	require.Equal(t, 0.5, rate())
}

func TestContentAfterClose(t *testing.T) {
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)))
	require.NoError(t, err)
	require.NoError(t, state.Close())
	_, err = state.Content(context.Background())
	require.ErrorIs(t, err, managed.ErrClosed)
	require.ErrorIs(t, state.Restore(context.Background(), &checkpoint.Checkpoint{}), managed.ErrClosed)
	require.True(t, errors.Is(err, managed.ErrClosed))
}
