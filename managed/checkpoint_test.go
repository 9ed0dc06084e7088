package managed_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// stops is how often the runs of F10 and F11 are stopped.
var stops = 4

func folder(t *testing.T, options checkpoint.Options) *checkpoint.Folder {
	t.Helper()
	f, err := checkpoint.Open(t.TempDir(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// session is a training with all that has a memory: dropout, Adam behind an accumulation, a schedule, averaged parameters, a
// metric over many batches, a plateau, early stopping.
type session struct {
	t        *testing.T
	set      *data.Set
	training loop.Loop[*managed.State, data.Batch]
}

func newSession(t *testing.T) session {
	tracked := func(b *managed.Builder) { b.Mean("running", b.Node("y")) }
	train := stepper(t, managed.TrainStep(func(b *managed.Builder) { noisy(b); tracked(b) }))
	test := stepper(t, managed.TestStep(noisy))
	evaluation := loop.Evaluation[*managed.State, data.Batch]{Name: "test", Loop: loop.New(loop.On(loop.EachStep, test)),
		Data: func(context.Context) (loop.Data[data.Batch], error) { return line(t, 48).Batches(16), nil }}
	return session{t, line(t, 80), loop.New(loop.On(loop.EachStep, train), evaluation.On(loop.Every(loop.Steps(7))))}
}

func (s session) state(strategy strategies.Strategy) *managed.State {
	rule := optim.New(0.02, optim.Accumulate(3), optim.Adam{}, optim.ScaleBySchedule(optim.Cosine(1, 0.5, 40)), optim.Average{Decay: 0.9})
	state, err := managed.New(strategy, managed.WithOptimizer(rule), managed.WithSeed(5))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, state.Close()) })
	return state
}

// run goes on from what the folder has, with blocks, until a step.
func (s session) run(strategy strategies.Strategy, f *checkpoint.Folder, until int64) loop.Result[*managed.State] {
	s.t.Helper()
	state := s.state(strategy)
	start, err := checkpoint.Resume(s.t.Context(), f, state)
	require.NoError(s.t, err)
	batches := s.set.Batches(16, data.Shuffle(3), data.Forever(), data.Skip(start.Elapsed.Steps))
	result, err := s.training.Run(s.t.Context(), state, batches, start.Option(), loop.Until(loop.Steps(until)),
		loop.ReduceOnPlateau("loss_test", loop.Lowest, 0.5, loop.Evaluations(2)),
		loop.StopEarly("loss_test", loop.Lowest, loop.Evaluations(1000)),
		checkpoint.Save(f, loop.Every(loop.Steps(31))))
	require.NoError(s.t, err)
	return result
}

func lossesOf(t *testing.T, h *loop.History) (all []string) {
	t.Helper()
	for at, logs := range h.Rows() {
		line := fmt.Sprint(at.Steps, " ", at.Samples)
		for e := range logs.All() {
			x, err := e.Value.Float()
			require.NoError(t, err)
			line += fmt.Sprintf(" %s=%x", e.Path(), math.Float64bits(x))
		}
		all = append(all, line)
	}
	return all
}

// A run that is stopped again and again is the run that was never stopped.
func TestF10_resumedRunMakesTheSameBits(t *testing.T) {
	r := runtime(t)
	s := newSession(t)
	const until = 200
	whole := s.run(strategies.Jit(r), folder(t, checkpoint.Options{}), until)
	want := bits(t, whole.State)
	f := folder(t, checkpoint.Options{Keep: []checkpoint.Retention{checkpoint.Last(1)}})
	random := rand.New(rand.NewPCG(10, 1))
	var last loop.Result[*managed.State]
	at := int64(0)
	for i := range stops {
		at += 1 + random.Int64N((until-at)/int64(stops-i)*2-1)
		at = min(at, until-int64(stops-i))
		s.run(strategies.Jit(r), f, at)
	}
	last = s.run(strategies.Jit(r), f, until)
	require.Equal(t, want, bits(t, last.State))
	require.Equal(t, lossesOf(t, whole.History), lossesOf(t, last.History))
	rate, err := last.State.LearningRate()
	require.NoError(t, err)
	require.Less(t, rate, 0.02, "the plateau had its say")
	t.Logf("F10: %d stops in %d steps (dropout, shuffle, accumulation, Adam, schedule, average, plateau, evaluations, blocks): 0 differing bits in %d variables and %d rows",
		stops, until, len(want), last.History.Len())
}

// A run on four devices goes on on one.
func TestF11_otherDevices(t *testing.T) {
	four, err := xla.Open(t.Context(), xla.CPU, xla.ClientOption("cpu_device_count", 4))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, four.Close()) })
	s := newSession(t)
	parallel, err := strategies.DataParallel(four)
	require.NoError(t, err)
	two, err := strategies.DataParallel(four, strategies.Devices(2))
	require.NoError(t, err)
	whole := s.run(parallel, folder(t, checkpoint.Options{}), 130)
	want, err := whole.History.Last("loss")
	require.NoError(t, err)
	f := folder(t, checkpoint.Options{})
	s.run(parallel, f, 30)
	s.run(two, f, 35)
	last := s.run(strategies.Jit(four), f, 130)
	got, err := last.History.Last("loss")
	require.NoError(t, err)
	require.InEpsilon(t, want, got, 1e-5)
	t.Logf("F11: 4 devices until step 30, 2 until 35, 1 until 130: loss %g, unbroken on 4 %g", got, want)
}

func TestRestoreRefusesAnotherModel(t *testing.T) {
	r := runtime(t)
	set := line(t, 64)
	model := func(name string, width int) *managed.Stepper {
		return stepper(t, managed.TrainStep(func(b *managed.Builder) {
			h := layers.Dense(b.Vars().In(name), b.Node("x"), true, width)
			b.Loss("loss", managed.MeanSquaredError(b.Node("y"), layers.Dense(b.Vars().In("out"), h, true, 1)))
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
		optimizer managed.Optimizer
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
				"build the model that was saved, or take the tensors that fit by State.Transfer"
			state := newState(t, r, managed.WithOptimizer(row.optimizer))
			require.NoError(t, state.Restore(t.Context(), load()), "a new state has no variables to compare")
			err := row.step.Prepare(t.Context(), state, first(t, set.Batches(16)))
			var mismatch *managed.MismatchError
			require.ErrorAs(t, err, &mismatch)
			require.Equal(t, want, mismatch.Error())
			require.Empty(t, state.Names())

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
		state := newState(t, r, managed.WithOptimizer(optimizers.Adam().Done()))
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
		require.ErrorContains(t, err, "managed: restore: this is no checkpoint of a managed.State (Transfer takes tensors of any)")
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

// Steps that were not made before the checkpoint bring in variables of their own, as a second network does, and metrics of a
// test; what no step has asked for is saved again.
func TestRestoreOfStepsThatCameLater(t *testing.T) {
	r := runtime(t)
	set := line(t, 64)
	network := func(name string) *managed.Stepper {
		return stepper(t, managed.TrainStep(func(b *managed.Builder) {
			b.Loss("loss", managed.MeanSquaredError(b.Node("y"), layers.Dense(b.Vars().In(name), b.Node("x"), true, 1)))
		}, managed.By(name+"_rule", optimizers.Adam().Done()), managed.Only(func(v string) bool { return strings.HasPrefix(v, "/"+name+"/") })))
	}
	one, two := network("one"), network("two")
	test := stepper(t, managed.TestStep(func(b *managed.Builder) {
		predicted := layers.Dense(b.Vars().In("one"), b.Node("x"), true, 1)
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
	require.Error(t, two.Prepare(t.Context(), restored(2), first(t, set.Batches(16))), "as the first step it looks like another model")
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
	r := runtime(t)
	set := line(t, 64)
	f := folder(t, checkpoint.Options{})
	weights := []float32{1, 2, 3}
	require.NoError(t, f.Save(t.Context(), 9, checkpoint.Content{Tensors: []checkpoint.Tensor{
		{Name: "backbone/kernel", DType: safetensors.F32, Dims: []int{1, 3}, Data: safetensors.Bytes(weights)},
		{Name: "other", DType: safetensors.F8E4M3, Dims: []int{1}, Data: []byte{1}},
	}}))
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	step := stepper(t, managed.TrainStep(func(b *managed.Builder) {
		h := layers.Dense(b.Vars().In("encoder"), b.Node("x"), true, 3)
		b.Loss("loss", managed.MeanSquaredError(b.Node("y"), layers.Dense(b.Vars().In("head"), h, true, 1)))
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
	require.ErrorContains(t, state.Transfer(t.Context(), c, nil), "no names given")
}

// A rate that is set between the restore and the first step is the newer one.
func TestRateOfARestoredState(t *testing.T) {
	r := runtime(t)
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
	state, err := managed.New(strategies.Jit(runtime(t)))
	require.NoError(t, err)
	require.NoError(t, state.Close())
	_, err = state.Content(context.Background())
	require.ErrorIs(t, err, managed.ErrClosed)
	require.ErrorIs(t, state.Restore(context.Background(), &checkpoint.Checkpoint{}), managed.ErrClosed)
	require.True(t, errors.Is(err, managed.ErrClosed))
}
