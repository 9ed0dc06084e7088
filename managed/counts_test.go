package managed_test

import (
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

// Steps counts all training steps of a state, whichever optimizer made them.
func TestS14_stepsWithBy(t *testing.T) {
	r := plugintest.CPU(t)
	build := func(b *managed.Builder) {
		b.Loss("loss", graph.Square(b.Scope().VariableWithValue("w", float32(1)).NodeValue(b.Graph())))
		b.Metric("steps", graph.ConvertDType(b.Steps(), b.Field("x").DType()))
	}
	rate := optim.New(0.01)
	for name, steps := range map[string][]*managed.Stepper{
		"with By alone":      {managed.TrainStep(build, managed.WithStepOptimizer("a", rate)), managed.TrainStep(build, managed.WithStepOptimizer("b", optim.GoMLX(optimizer.Adam().Done())))},
		"with the state's":   {managed.TrainStep(build), managed.TrainStep(build, managed.WithStepOptimizer("b", rate))},
		"the state's, GoMLX": {managed.TrainStep(build, managed.WithStepOptimizer("b", rate)), managed.TrainStep(build)},
	} {
		t.Run(name, func(t *testing.T) {
			state := newState(t, r, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
			test := stepper(t, managed.TestStep(build))
			batch := first(t, line(t, 8).Batches(8))
			for i := range 6 {
				for _, step := range []*managed.Stepper{test, stepper(t, steps[i%2])} {
					_, logs, err := step.Step(t.Context(), state, batch)
					require.NoError(t, err)
					n, err := logs.Float("steps")
					require.NoError(t, err)
					require.EqualValues(t, i, n)
				}
			}
		})
	}
}

// The averages of a batch normalization that a step does not train stay bit-identical, however it is frozen.
func TestS17_statisticsOfTheFrozen(t *testing.T) {
	r := plugintest.CPU(t)
	layers := map[string]func(scope *model.Scope, x *graph.Node) *graph.Node{
		"nn":    nn.BatchNorm{}.Apply,
		"GoMLX": func(scope *model.Scope, x *graph.Node) *graph.Node { return norm.BatchNorm(scope, x, -1).Done() },
	}
	for layer, normal := range layers {
		model := func(b *managed.Builder, name string) *graph.Node {
			w := b.Scope().At("%s", name).VariableWithValue("w", float32(2)).NodeValue(b.Graph())
			return normal(b.Scope().At("%s", name), graph.Mul(b.Field("x"), w))
		}
		loss := func(of func(*graph.Node) *graph.Node) managed.Build {
			return func(b *managed.Builder) {
				b.Loss("loss", graph.ReduceAllMean(graph.Square(graph.Sub(model(b, "student"), of(model(b, "teacher"))))))
			}
		}
		plain := func(x *graph.Node) *graph.Node { return x }
		student := managed.TrainOnly(func(name string) bool { return optim.Under("/student").Takes(name, shapes.Shape{}) })
		for name, row := range map[string]struct {
			chain optim.Chain
			step  *managed.Stepper
			moves bool
		}{
			"Only":         {nil, managed.TrainStep(loss(plain), student), false},
			"Frozen":       {optim.Chain{optim.Frozen(optim.Under("/teacher"))}, managed.TrainStep(loss(plain)), false},
			"StopGradient": {nil, managed.TrainStep(loss(graph.StopGradient)), false},
			"trained":      {nil, managed.TrainStep(loss(plain)), true},
		} {
			t.Run(layer+", "+name, func(t *testing.T) {
				state := newState(t, r, managed.WithOptimizer(optim.New(0.01, row.chain...)))
				step := stepper(t, row.step)
				batch := first(t, line(t, 8).Batches(8))
				require.NoError(t, step.Prepare(t.Context(), state, batch))
				before := bits(t, state)
				for range 3 {
					_, _, err := step.Step(t.Context(), state, batch)
					require.NoError(t, err)
				}
				after := bits(t, state)
				for _, s := range []string{"mean", "variance", "avg_weight"} {
					teacher, trained := "/teacher/batch_normalization/"+s, "/student/batch_normalization/"+s
					require.Equal(t, row.moves, string(before[teacher]) != string(after[teacher]), teacher)
					require.NotEqual(t, before[trained], after[trained], trained)
				}
			})
		}
	}
}
