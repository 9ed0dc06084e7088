package managed_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/xla"
)

// program is a training whose steps come one after the other: of[i] says which is the i-th.
type program struct {
	steps     func() []*managed.Stepper
	of        []int
	optimizer func() *optim.Optimizer
}

// layer is a dense layer on another, with dropout, so that random numbers are drawn in each step.
func layer(b *managed.Builder, name string, x *graph.Node, width int) *graph.Node {
	h := layers.Dense(b.Scope().In("%s", name), x, true, width)
	return layers.Dropout(b.Scope().In("%s_drop", name), h, graph.Scalar(b.Graph(), h.DType(), 0.2))
}

func headOnBody(b *managed.Builder) {
	predicted := layers.Dense(b.Scope().In("head"), layer(b, "body", b.Field("x"), 4), true, 1)
	b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), predicted)))
}

func below(scope string) managed.StepOption {
	return managed.TrainOnly(func(name string) bool { return strings.HasPrefix(name, scope) })
}

func gomlxAdam() *optim.Optimizer { return optim.GoMLX(optimizer.Adam().LearningRate(0.01).Done()) }

// later are trainings whose last step is used for the first time in the middle.
var later = map[string]program{
	"unfreeze": {of: []int{0, 0, 0, 1, 1, 1}, optimizer: gomlxAdam, steps: func() []*managed.Stepper {
		return []*managed.Stepper{managed.TrainStep(headOnBody, below("/head/")), managed.TrainStep(headOnBody)}
	}},
	"unfreeze with a rule of optim": {of: []int{0, 0, 0, 1, 1, 1}, steps: func() []*managed.Stepper {
		return []*managed.Stepper{managed.TrainStep(headOnBody, below("/head/")), managed.TrainStep(headOnBody)}
	}, optimizer: func() *optim.Optimizer { return optim.New(0.01, optim.Accumulate(2), optim.Adam{}) }},
	"groups that join": {of: []int{0, 0, 1, 0, 2, 2, 1}, steps: func() []*managed.Stepper {
		return []*managed.Stepper{managed.TrainStep(headOnBody, below("/head/")), managed.TrainStep(headOnBody, below("/body/")), managed.TrainStep(headOnBody)}
	}, optimizer: func() *optim.Optimizer {
		return optim.New(0.01, optim.SkipNonFinite(), optim.Groups(
			optim.Group{Name: "head", Match: optim.Under("/head"), Chain: optim.Chain{optim.SkipNonFinite(), optim.Adam{}, optim.ScaleBySchedule(optim.Linear(1, 0.5, 4))}},
			optim.Group{Name: "body", Chain: optim.Chain{optim.Accumulate(2), optim.Adam{}, optim.ScaleBySchedule(optim.Linear(1, 0.5, 4))}}))
	}},
	"generator first": {of: []int{0, 0, 1, 0, 1, 1}, steps: func() []*managed.Stepper {
		generated := func(b *managed.Builder) *graph.Node { return layer(b, "generator", b.Field("x"), 1) }
		judged := func(b *managed.Builder, x *graph.Node) *graph.Node {
			return layers.Dense(b.Scope().At("discriminator"), x, true, 1)
		}
		return []*managed.Stepper{
			managed.TrainStep(func(b *managed.Builder) {
				b.Loss("loss", graph.ReduceAllMean(graph.Square(graph.OneMinus(judged(b, generated(b))))))
			}, below("/generator/"), managed.WithStepOptimizer("generator_rule", gomlxAdam())),
			managed.TrainStep(func(b *managed.Builder) {
				real, made := judged(b, b.Field("y")), judged(b, generated(b))
				b.Loss("loss", graph.ReduceAllMean(graph.Add(graph.Square(graph.OneMinus(real)), graph.Square(made))))
			}, below("/discriminator/"), managed.WithStepOptimizer("discriminator_rule", optim.New(0.01, optim.Adam{}))),
		}
	}},
	"layers and metrics of its own": {of: []int{0, 0, 0, 1, 1, 1}, optimizer: gomlxAdam, steps: func() []*managed.Stepper {
		return []*managed.Stepper{
			managed.TrainStep(headOnBody),
			managed.TrainStep(func(b *managed.Builder) {
				h := layer(b, "body", b.Field("x"), 4)
				h = nn.BatchNorm{}.Apply(b.Scope().In("norm"), h)
				predicted := layers.Dense(b.Scope().In("more"), h, true, 1)
				b.Mean("predicted", predicted)
				b.Metric("samples", b.Samples())
				b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), predicted)))
			}),
		}
	}},
	"in turns": {of: []int{0, 1, 0, 1, 0, 1}, optimizer: gomlxAdam, steps: func() []*managed.Stepper {
		task := func(name string) managed.Build {
			return func(b *managed.Builder) {
				b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), layers.Dense(b.Scope().In("%s", name), layer(b, "body", b.Field("x"), 4), true, 1))))
			}
		}
		return []*managed.Stepper{managed.TrainStep(task("one")), managed.TrainStep(task("two"), managed.WithStepOptimizer("two_rule", gomlxAdam()))}
	}},
}

// trained makes the steps from i on, by steps that are new as in a new process, and gives their losses, and the
// content of a checkpoint before each.
func (p program) trained(t *testing.T, state *managed.State, i int, save func(step int)) (losses []string) {
	t.Helper()
	made := p.steps()
	defer func() {
		for _, s := range made {
			require.NoError(t, s.Close())
		}
	}()
	for ; i < len(p.of); i++ {
		if save != nil {
			save(i)
		}
		batch := batchAt(i)
		_, logs, err := made[p.of[i]].Step(t.Context(), state, batch)
		require.NoError(t, err, "step %d", i)
		losses = append(losses, fmt.Sprintf("%d: %x", i, math.Float64bits(float(t, logs, "loss"))))
	}
	return losses
}

func batchAt(i int) data.Batch {
	return data.Batch{Fields: []data.Field{
		data.X([]float32{float32(i), 1, -1, float32(i) / 2}, 4, 1), data.Y([]float32{3*float32(i) + 1, 4, -2, 1.5*float32(i) + 1}, 4, 1)}}
}

func (p program) state(t *testing.T, r *xla.Runtime) *managed.State {
	options := []managed.Option{managed.WithSeed(7)}
	if p.optimizer != nil {
		options = append(options, managed.WithOptimizer(p.optimizer()))
	}
	return newState(t, r, options...)
}

// contents are all values that a checkpoint of the state has, those that still wait for their step among them.
func contents(t *testing.T, state *managed.State) map[string]string {
	t.Helper()
	content, err := state.Content(t.Context())
	require.NoError(t, err)
	all := map[string]string{}
	for _, tensor := range content.Tensors {
		var b strings.Builder
		require.NoError(t, tensor.Write(&b))
		all[tensor.Name] = b.String()
	}
	return all
}

func saveTo(t *testing.T, f *checkpoint.Folder, state *managed.State, step int) {
	t.Helper()
	content, err := state.Content(t.Context())
	require.NoError(t, err)
	require.NoError(t, f.Save(t.Context(), checkpoint.Step(step), content))
}

func load(t *testing.T, f *checkpoint.Folder, step int) *checkpoint.Checkpoint {
	t.Helper()
	c, err := f.Load(t.Context(), checkpoint.Step(step))
	require.NoError(t, err)
	return c
}

// A training stopped before the first use of one of its steps continues from any checkpoint as if it had not been
// stopped: in a new state, and in one that was trained further.
func TestS04_aStepThatIsFirstUsedAfterTheCheckpoint(t *testing.T) {
	r := plugintest.CPU(t)
	resumed := 0
	for name, p := range later {
		t.Run(name, func(t *testing.T) {
			f := folder(t, checkpoint.Options{})
			whole := p.state(t, r)
			losses := p.trained(t, whole, 0, func(step int) { saveTo(t, f, whole, step) })
			want := contents(t, whole)
			for at := 1; at < len(p.of); at++ {
				state := p.state(t, r)
				require.NoError(t, state.Restore(t.Context(), load(t, f, at)))
				require.Equal(t, losses[at:], p.trained(t, state, at, nil), "from the checkpoint of step %d", at)
				require.Equal(t, want, contents(t, state), "from the checkpoint of step %d", at)

				require.NoError(t, whole.Restore(t.Context(), load(t, f, at)), "into the state that was trained further")
				require.Equal(t, losses[at:], p.trained(t, whole, at, nil), "back to the checkpoint of step %d", at)
				require.Equal(t, want, contents(t, whole), "back to the checkpoint of step %d", at)
				resumed += 2
			}
		})
	}
	t.Logf("S04: %d resumes, each with the bits of the run that was not stopped", resumed)
}

// The record survives a checkpoint that is saved after the restore, before all steps were used again.
func TestS04_savedAgainBeforeTheStepIsUsed(t *testing.T) {
	r := plugintest.CPU(t)
	for name, p := range later {
		t.Run(name, func(t *testing.T) {
			f := folder(t, checkpoint.Options{})
			whole := p.state(t, r)
			losses := p.trained(t, whole, 0, func(step int) { saveTo(t, f, whole, step) })
			for at := 1; at < len(p.of); at++ {
				g := folder(t, checkpoint.Options{})
				between := p.state(t, r)
				require.NoError(t, between.Restore(t.Context(), load(t, f, at)))
				saveTo(t, g, between, at)
				state := p.state(t, r)
				require.NoError(t, state.Restore(t.Context(), load(t, g, at)))
				require.Equal(t, losses[at:], p.trained(t, state, at, nil))
			}
		})
	}
}

// A model that differs from the checkpoint's stays an error, also in a step that is first used later.
func TestS04_anotherModelIsRefused(t *testing.T) {
	r := plugintest.CPU(t)
	p := later["unfreeze"]
	f := folder(t, checkpoint.Options{})
	whole := p.state(t, r)
	p.trained(t, whole, 0, func(step int) { saveTo(t, f, whole, step) })
	batch := batchAt(3)
	width, name := 4, "head"
	changed := func(b *managed.Builder) {
		predicted := layers.Dense(b.Scope().In("%s", name), layer(b, "body", b.Field("x"), width), true, 1)
		b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), predicted)))
	}
	g := folder(t, checkpoint.Options{})
	saved := p.state(t, r)
	step := stepper(t, managed.TrainStep(changed, below("/head/")))
	_, _, err := step.Step(context.Background(), saved, batch)
	require.NoError(t, err)
	saveTo(t, g, saved, 3)
	for row, edit := range map[string]struct {
		to   func()
		want string
	}{
		"renamed": {func() { name = "top" }, "/top/dense/weights: not in the checkpoint"},
		"wider":   {func() { width = 5 }, "/body/dense/weights: saved as float32[1 4], the model has float32[1 5]"},
	} {
		t.Run(row, func(t *testing.T) {
			defer func() { width, name = 4, "head" }()
			edit.to()
			state := p.state(t, r)
			require.NoError(t, state.Restore(t.Context(), load(t, g, 3)))
			var mismatch *managed.MismatchError
			err := stepper(t, managed.TrainStep(changed)).Prepare(t.Context(), state, batch)
			require.ErrorAs(t, err, &mismatch)
			require.ErrorContains(t, err, edit.want)
		})
	}
	t.Run("another optimizer", func(t *testing.T) {
		state := newState(t, r, managed.WithOptimizer(optim.New(0.01, optim.Adam{})))
		require.NoError(t, state.Restore(t.Context(), load(t, f, 3)))
		require.ErrorContains(t, stepper(t, managed.TrainStep(headOnBody)).Prepare(t.Context(), state, batch), "not in the checkpoint")
	})
	t.Run("a layer more in the same function", func(t *testing.T) {
		more := false
		build := func(b *managed.Builder) {
			h := layer(b, "body", b.Field("x"), 4)
			if more {
				h = layer(b, "more", h, 4)
			}
			b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), layers.Dense(b.Scope().In("head"), h, true, 1))))
		}
		state, g := p.state(t, r), folder(t, checkpoint.Options{})
		require.NoError(t, stepper(t, managed.TrainStep(build)).Prepare(t.Context(), state, batch))
		saveTo(t, g, state, 1)
		again := p.state(t, r)
		require.NoError(t, again.Restore(t.Context(), load(t, g, 1)))
		more = true
		err := stepper(t, managed.TrainStep(build)).Prepare(t.Context(), again, batch)
		require.ErrorContains(t, err, "/more/dense/weights: not in the checkpoint")
		require.ErrorContains(t, err, "if this step was not used before the checkpoint, prepare a step that was")
	})
}

// For a checkpoint of an older version, which does not list its steps, the step continues if another parameter proves
// that the same optimizer was used before and had not trained this one.
func TestS04_checkpointsWithoutTheRecord(t *testing.T) {
	r := plugintest.CPU(t)
	p := later["unfreeze"]
	old := func(of program) (*checkpoint.Folder, []string) {
		f := folder(t, checkpoint.Options{})
		state := of.state(t, r)
		losses := of.trained(t, state, 0, func(step int) {
			content, err := state.Content(t.Context())
			require.NoError(t, err)
			delete(content.Sections, "steps")
			require.NoError(t, f.Save(t.Context(), checkpoint.Step(step), content))
		})
		return f, losses
	}
	f, losses := old(p)
	for at := 1; at < len(p.of); at++ {
		state := p.state(t, r)
		require.NoError(t, state.Restore(t.Context(), load(t, f, at)))
		require.Equal(t, losses[at:], p.trained(t, state, at, nil))
		content, err := state.Content(t.Context())
		require.NoError(t, err)
		require.NotContains(t, content.Sections, "steps", "it would not be complete")
	}
	p = later["layers and metrics of its own"]
	f, _ = old(p)
	state := p.state(t, r)
	require.NoError(t, state.Restore(t.Context(), load(t, f, 3)))
	require.ErrorContains(t, stepper(t, p.steps()[1]).Prepare(t.Context(), state, batchAt(3)), "/more/dense/weights: not in the checkpoint")
}

// A snapshot of before cannot be put back when a restore has taken variables out of the state.
func TestS04_aSnapshotOfBeforeTheRestore(t *testing.T) {
	p, f := later["unfreeze"], folder(t, checkpoint.Options{})
	state := p.state(t, plugintest.CPU(t))
	p.trained(t, state, 0, func(step int) { saveTo(t, f, state, step) })
	snapshot := take(t, state)
	defer func() { require.NoError(t, snapshot.Close()) }()
	require.NoError(t, state.Restore(t.Context(), load(t, f, 2)))
	require.ErrorContains(t, snapshot.Restore(t.Context()), "SetOptimizer or Restore has changed the state's variables since the snapshot")
}
