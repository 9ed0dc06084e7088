package managed_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/train"
	"github.com/lazo-ml/lazo/xla"
)

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// affine is y = wx + b.
func affine(b *managed.Builder) {
	predicted := layers.Dense(b.Scope(), b.Field("x"), true, 1)
	b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), predicted)))
}

// exampleBatch has y = 2x.
func exampleBatch() data.Batch {
	return data.Batch{Fields: []data.Field{data.X([]float32{1, 2, 3, 4}, 4, 1), data.Y([]float32{2, 4, 6, 8}, 4, 1)}, Size: 4}
}

// The variables are there before the first batch, and can be looked at.
func ExampleStepper_Prepare() {
	ctx := context.Background()
	runtime := must(xla.Open(ctx, xla.CPU))
	defer runtime.Close()
	state := must(managed.New(strategies.Jit(runtime), managed.WithOptimizer(sgd())))
	defer state.Close()
	step := managed.TrainStep(affine)
	defer step.Close()
	batch := must(managed.ZeroBatch(data.X(nil, 4, 1), data.Y(nil, 4, 1)))
	check(step.Prepare(ctx, state, batch))
	fmt.Print(state.Summary())
	// Output:
	// layer        variable       shape  dtype    size  bytes  kind
	// /dense       biases         [1]    Float32     1      4  trainable
	//              weights        [1 1]  Float32     1      4  trainable
	// /            global_step    []     Int64       1      8  optimizer
	// /optimizers  learning_rate  []     Float32     1      4  optimizer
	// /            #rngState      [3]    Uint64      3     24  random
	//
	// total      variables  size  bytes
	// trainable          2     2      8
	// optimizer          2     2     12
	// random             1     3     24
	// all                5     7     44
}

// A model starts from given parameters; a new last layer would be drawn at random.
func ExampleWithValues() {
	ctx := context.Background()
	runtime := must(xla.Open(ctx, xla.CPU))
	defer runtime.Close()
	state := must(managed.New(strategies.Jit(runtime), managed.WithValues(map[string]*tensors.Tensor{
		"/dense/weights": tensors.FromValue([][]float32{{2}}),
		"/dense/biases":  tensors.FromValue([]float32{0}),
	}), managed.DrawMissing(func(name string) bool { return strings.HasPrefix(name, "/head/") })))
	defer state.Close()
	_, logs, err := managed.TestStep(affine).Step(ctx, state, exampleBatch())
	check(err)
	fmt.Println(logs.Float("loss"))
	// Output:
	// 0 <nil>
}

// A state trained on one device continues under another strategy; its clone stays on the first.
func ExampleState_MoveTo() {
	ctx := context.Background()
	runtime := must(xla.Open(ctx, xla.CPU, xla.ClientOption("cpu_device_count", 2)))
	defer runtime.Close()
	state := must(managed.New(strategies.Jit(runtime), managed.WithOptimizer(sgd())))
	defer state.Close()
	step := managed.TrainStep(affine)
	defer step.Close()
	_, _, err := step.Step(ctx, state, exampleBatch())
	check(err)

	clone := must(state.Clone(ctx, state.Strategy()))
	defer clone.Close()
	check(state.MoveTo(ctx, must(strategies.DataParallel(runtime, strategies.Parallel{}))))
	same := func(name string) bool { return must(clone.Value(name)).Equal(must(state.Value(name))) }
	fmt.Println(clone.Strategy(), same("/dense/weights"))
	_, _, err = step.Step(ctx, state, exampleBatch())
	check(err)
	fmt.Println(state.Strategy())
	fmt.Println(same("/dense/weights"))
	// Output:
	// jit true
	// data_parallel
	// false
}

// A custom variable is part of the state, kept in snapshots and moved with it. Here it counts examples whose target is
// large.
func ExampleBuilder_Scope() {
	ctx := context.Background()
	runtime := must(xla.Open(ctx, xla.CPU))
	defer runtime.Close()
	state := must(managed.New(strategies.Jit(runtime), managed.WithOptimizer(sgd())))
	defer state.Close()
	step := managed.TrainStep(func(b *managed.Builder) {
		affine(b)
		seen := b.Scope().In("mine").VariableWithValue("large", float32(0)).SetTrainable(false)
		large := graph.GreaterThan(b.Field("y"), graph.Scalar(b.Graph(), b.Field("y").DType(), 5))
		now := graph.ReduceAllSum(graph.ConvertDType(large, b.Field("y").DType()))
		seen.SetNodeValue(graph.Add(seen.NodeValue(b.Graph()), now))
	})
	defer step.Close()
	for range 3 {
		_, _, err := step.Step(ctx, state, exampleBatch())
		check(err)
	}
	fmt.Println(must(state.Value("/mine/large")).Value())
	check(state.SetValue("/mine/large", tensors.FromScalar(float32(0))))
	fmt.Println(must(state.Value("/mine/large")).Value())
	// Output:
	// 6
	// 0
}

// curriculum is a custom state: a model and, on the host, the difficulty of its examples.
type curriculum struct {
	*managed.State
	level int
}

// A struct that embeds a state goes through the predefined loops as the state itself would; what is the user's own is
// changed by Go functions.
func ExampleState_embedded() {
	ctx := context.Background()
	runtime := must(xla.Open(ctx, xla.CPU))
	defer runtime.Close()
	mine := &curriculum{State: must(managed.New(strategies.Jit(runtime), managed.WithOptimizer(sgd())))}
	defer mine.Close()
	step := managed.TrainStep(affine)
	defer step.Close()

	fit := train.Loop[*curriculum, data.Batch]{
		Step: loop.StepFunc[*curriculum, data.Batch](func(ctx context.Context, c *curriculum, batch data.Batch) (*curriculum, loop.Logs, error) {
			_, logs, err := step.Step(ctx, c.State, batch)
			return c, logs, err
		}),
		Epoch: loop.Steps(5),
		Tasks: []loop.Task[*curriculum, data.Batch]{
			loop.On(loop.Every(loop.Steps(5)), loop.StepFunc(func(_ context.Context, c *curriculum, _ data.Batch) (*curriculum, loop.Logs, error) {
				c.level++
				return c, loop.Logs{}, c.SetLearningRate(0.1 / float64(c.level))
			})),
		},
	}
	batches := func(yield func(data.Batch, error) bool) {
		for yield(exampleBatch(), nil) {
		}
	}
	result, err := fit.Run(ctx, mine, loop.Data[data.Batch](batches), loop.Until(loop.Steps(20)))
	check(err)
	rate := must(result.State.LearningRate())
	fmt.Println(result.State.level, result.State.Parameters(), float32(rate))
	// Output:
	// 4 2 0.025
}
