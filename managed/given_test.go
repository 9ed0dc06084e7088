package managed_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

// reread returns a state's content as a checkpoint.
func reread(t *testing.T, state *managed.State) *checkpoint.Checkpoint {
	t.Helper()
	folder, err := checkpoint.Open(t.TempDir(), checkpoint.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, folder.Close()) }()
	content, err := state.Content(t.Context())
	require.NoError(t, err)
	require.NoError(t, folder.Save(t.Context(), 1, content))
	newest, err := folder.Newest(t.Context())
	require.NoError(t, err)
	return newest
}

func squared(name string, units int, options ...managed.StepOption) *managed.Stepper {
	return managed.TrainStep(func(b *managed.Builder) {
		b.Loss("loss", graph.ReduceAllMean(graph.Square(nn.Dense{Units: units}.Apply(b.Scope().At("%s", name), b.Field("x")))))
	}, options...)
}

// Given values are initial values also of variables that a restored checkpoint lacks.
func TestWithValues_ofVariablesAfterRestore(t *testing.T) {
	r := plugintest.CPU(t)
	values := func() managed.Option {
		return managed.WithValues(map[string]*tensors.Tensor{
			"/actor/kernel": tensors.FromValue([][]float32{{5}, {6}}), "/actor/bias": tensors.FromValue([]float32{7}),
			"/critic/kernel": tensors.FromValue([][]float32{{1, 2}, {3, 4}}), "/critic/bias": tensors.FromValue([]float32{5, 6}),
		})
	}
	actor, critic := stepper(t, squared("actor", 1)), stepper(t, squared("critic", 2, managed.WithStepOptimizer("critic_opt", optim.New(0.01))))
	run := func(restores bool) map[string][]byte {
		state := newState(t, r, managed.WithOptimizer(optim.New(0.01)), values())
		one(t, actor, state, pair)
		if restores {
			saved := reread(t, state)
			state = newState(t, r, managed.WithOptimizer(optim.New(0.01)), values())
			require.NoError(t, state.Restore(t.Context(), saved))
		}
		one(t, actor, state, pair)
		one(t, critic, state, pair)
		return bits(t, state)
	}
	require.Equal(t, run(false), run(true))

	// A value that a variable took before the restore is used up.
	state := newState(t, r, managed.WithOptimizer(optim.New(0.01)), values())
	one(t, actor, state, pair)
	saved := reread(t, state)
	one(t, critic, state, pair)
	require.NoError(t, state.Restore(t.Context(), saved))
	_, _, err := critic.Step(t.Context(), state, pair)
	require.ErrorContains(t, err, "the given values do not fit the model: ")
	require.ErrorContains(t, err, "/critic/kernel had a given value, which a step took before the restored checkpoint removed the variable: restore into a new state")
}

// A given value that no step uses is no value of a checkpoint.
func TestWithValues_unusedWithSetOptimizer(t *testing.T) {
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(optim.New(0.01)), managed.WithValues(map[string]*tensors.Tensor{
		"/actor/kernel": tensors.FromValue([][]float32{{5}, {6}}), "/actor/bias": tensors.FromValue([]float32{7}), "/other": tensors.FromValue(float32(1))}))
	actor := stepper(t, squared("actor", 1))
	one(t, actor, state, pair)
	require.NoError(t, state.SetOptimizer(t.Context(), optim.New(0.1, optim.Adam{})))
	one(t, actor, state, pair)
}

// A step that fails to build leaves no variables.
func TestStep_failedBuildLeavesNoVariables(t *testing.T) {
	r := plugintest.CPU(t)
	stack := func(layers ...string) *managed.Stepper {
		return managed.TrainStep(func(b *managed.Builder) {
			y := b.Field("x")
			for _, name := range layers {
				y = nn.Dense{Units: 2}.Apply(b.Scope().At("%s", name), y)
			}
			b.Loss("loss", graph.ReduceAllMean(graph.Square(y)))
		})
	}
	small, large := stack("a"), stack("a", "w")
	state := newState(t, r, managed.WithOptimizer(optim.New(0.01)))
	one(t, stepper(t, small), state, pair)
	restored := newState(t, r, managed.WithOptimizer(optim.New(0.01)))
	require.NoError(t, restored.Restore(t.Context(), reread(t, state)))
	require.NoError(t, small.Close())
	_, _, err := stepper(t, large).Step(t.Context(), restored, pair)
	require.ErrorContains(t, err, "/w/bias: not in the checkpoint")
	one(t, small, restored, pair)
	one(t, small, state, pair)
	require.Equal(t, bits(t, state), bits(t, restored))

	broken := stepper(t, managed.TrainStep(func(b *managed.Builder) {
		nn.Dense{Units: 3}.Apply(b.Scope().In("never"), b.Field("x"))
		panic("no")
	}))
	_, _, err = broken.Step(t.Context(), state, pair)
	require.Error(t, err)
	one(t, stepper(t, squared("b", 1)), state, pair)
	require.NotContains(t, state.Names(), "/never/kernel")
}

// A loss that uses the value of before SetNodeValue would not train the parameter: an error.
func TestStep_earlierUseOfASetParameter(t *testing.T) {
	r := plugintest.CPU(t)
	run := func(build func(w *graph.Node, set func(*graph.Node)) (loss *graph.Node, after *graph.Node)) (float64, error) {
		state := newState(t, r, managed.WithOptimizer(optim.New(0.1)))
		_, _, err := stepper(t, managed.TrainStep(func(b *managed.Builder) {
			u := b.Scope().VariableWithValue("u", float32(1)).NodeValue(b.Graph())
			v := b.Scope().VariableWithValue("w", float32(3))
			loss, after := build(v.NodeValue(b.Graph()), func(n *graph.Node) { v.SetNodeValue(n) })
			b.Loss("loss", graph.Add(loss, graph.Square(u)))
			if after != nil {
				v.SetNodeValue(after)
			}
		})).Step(t.Context(), state, pair)
		if err != nil {
			return 0, err
		}
		value, err := state.Value("/w")
		require.NoError(t, err)
		return float64(value.Value().(float32)), nil
	}
	w, err := run(func(w *graph.Node, set func(*graph.Node)) (*graph.Node, *graph.Node) {
		bounded := graph.MinScalar(w, 2)
		set(bounded)
		return graph.Square(bounded), nil
	})
	require.NoError(t, err)
	require.InDelta(t, 2-0.1*4, w, 1e-6, "the value is set, used, and trained")
	w, err = run(func(w *graph.Node, set func(*graph.Node)) (*graph.Node, *graph.Node) {
		return graph.Square(graph.StopGradient(w)), graph.MulScalar(w, 0.5)
	})
	require.NoError(t, err)
	require.InDelta(t, 1.5, w, 1e-6, "a value that the loss does not train may be set")
	for name, build := range map[string]func(w *graph.Node, set func(*graph.Node)) (*graph.Node, *graph.Node){
		"after the loss": func(w *graph.Node, set func(*graph.Node)) (*graph.Node, *graph.Node) {
			return graph.Square(w), graph.MulScalar(w, 0.99)
		},
		"before the loss": func(w *graph.Node, set func(*graph.Node)) (*graph.Node, *graph.Node) {
			set(graph.MinScalar(w, 2))
			return graph.Square(w), nil
		},
	} {
		_, err := run(build)
		require.ErrorContains(t, err, "the loss uses the value that /w had before its SetNodeValue", name)
	}
}

// A snapshot of a phase in which fewer variables were trained is restored; the later ones are removed.
func TestSnapshot_ofAnEarlierPhase(t *testing.T) {
	r := plugintest.CPU(t)
	train, frozen := stepper(t, squared("a", 1)), stepper(t, squared("a", 1, managed.TrainOnly(func(name string) bool { return name == "/a/bias" })))
	state := newState(t, r, managed.WithOptimizer(optim.New(0.1, optim.Adam{})))
	one(t, frozen, state, pair)
	snapshot := take(t, state)
	defer func() { require.NoError(t, snapshot.Close()) }()
	before := bits(t, state)
	one(t, train, state, pair)
	first := bits(t, state)
	require.Greater(t, len(first), len(before))
	for range 2 {
		require.NoError(t, snapshot.Restore(t.Context()))
		require.Equal(t, before, bits(t, state))
		one(t, train, state, pair)
		require.Equal(t, first, bits(t, state))
	}
}
