package docs_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/train"
	"github.com/lazo-ml/lazo/xla"
)

// Each argument of Lightning's Trainer, each ready callback and each hook has a row under its heading.
func TestLightning_list(t *testing.T) {
	counts := checkRows(t, "from-lightning.md", "testdata/lightning_list.txt")
	require.Len(t, counts, 4)
	require.Greater(t, counts["trainer"], 40)
}

func Example_lightningModule() {
	ctx, strategy := context.Background(), jit()
	training, validation := digits()
	step := func(b *managed.Builder) { // training_step and validation_step
		x := graph.Reshape(b.Field("x"), -1, 64)
		h := nn.Dropout{Rate: 0.1}.Apply(b.Scope(), nn.Dense{Units: 32}.Apply(b.Scope().In("hidden"), x))
		logits := nn.Dense{Units: 10}.Apply(b.Scope().In("logits"), graph.Tanh(h))
		b.Loss("loss", losses.CrossEntropy(b.Field("y"), logits))
		b.Metric("accuracy", losses.Accuracy(b.Field("y"), logits)) // self.log
	}
	state := must.M1(managed.New(strategy, managed.WithSeed(1),
		managed.WithOptimizer(optim.New(0.01, optim.Adam{})))) // configure_optimizers
	epoch := loop.Steps(training.Len() / 32)
	trainer := train.Loop[*managed.State, data.Batch]{
		Step:  managed.TrainStep(step),
		Epoch: epoch,
		Tests: []loop.Evaluation[*managed.State, data.Batch]{
			loop.Evaluate("val", managed.TestStep(step), validation.Batches(32)),
		},
	}
	result := must.M1(trainer.Run(ctx, state, training.Batches(32, data.Shuffle(1)),
		loop.Until(8*epoch), callbacks.StopEarly("loss_val", callbacks.Evaluations(3)), callbacks.KeepBest("loss_val")))
	best, _ := must.M2(result.History.Best("accuracy_val", loop.Highest))
	fmt.Println("validation accuracy above 0.7:", best > 0.7)
	must.M(state.Close())
	// Output:
	// validation accuracy above 0.7: true
}

// regression is a linear model for the tests of what goes around a step.
func regression(b *managed.Builder) {
	b.Loss("loss", losses.SquaredError(b.ToOutputType(b.Field("y")), b.ToOutputType(nn.Dense{Units: 1}.Apply(b.Scope(), b.Field("x")))))
}

func Example_lightningTrainer() {
	ctx, strategy := context.Background(), jit()
	training, validation := line(128), line(32)
	step := regression
	dir := must.M1(os.MkdirTemp("", "from-lightning-"))
	defer os.RemoveAll(dir)
	optimizer := optim.New(0.1,
		optim.Accumulate(4),       // accumulate_grad_batches=4
		optim.Clip{GlobalNorm: 1}, // gradient_clip_val=1
		optim.Adam{},
		optim.WeightDecay{Rate: 0.01, Match: optim.RankFrom(2)})
	state := must.M1(managed.New(strategy, managed.WithOptimizer(optimizer),
		managed.WithPolicy(optim.MixedBFloat16()))) // precision="bf16-mixed"
	test := loop.Evaluate("test", managed.TestStep(step), validation.Batches(8), loop.Until(loop.Steps(2))) // limit_val_batches=2
	trainer := train.Loop[*managed.State, data.Batch]{
		Step:  managed.TrainStep(step),
		Tasks: []loop.Task[*managed.State, data.Batch]{test.On(loop.Every(loop.Steps(20)).AndAtStart())}, // val_check_interval=20
	}
	result := must.M1(trainer.Run(ctx, state, training.Batches(8),
		loop.Until(loop.Steps(100)), callbacks.TimeLimit(time.Hour), // max_steps, max_time
		callbacks.JSONL(filepath.Join(dir, "log.jsonl"), loop.Every(loop.Steps(50))), // log_every_n_steps=50
		callbacks.NonFinite(), callbacks.Measure(func(t callbacks.Timing) { fmt.Println("steps timed:", t.Steps) }))) // profiler="simple"
	fmt.Println("tests:", len(must.M1(result.History.Collect("loss_test"))[0]))
	fmt.Println("lines:", strings.Count(string(must.M1(os.ReadFile(filepath.Join(dir, "log.jsonl")))), "\n"))
	must.M(state.Close())
	// Output:
	// steps timed: 100
	// tests: 6
	// lines: 2
}

func Example_lightningDevices() {
	ctx := context.Background()
	training := line(64)
	step := regression
	runtime := must.M1(xla.Open(ctx, xla.CPU, xla.ClientOption("cpu_device_count", 2)))    // accelerator
	strategy := must.M1(strategies.DataParallel(runtime, strategies.Parallel{Devices: 2})) // devices=2, strategy="ddp"
	state := must.M1(managed.New(strategy, managed.WithOptimizer(optim.New(0.1))))
	fit := loop.New(loop.On(loop.EachStep, managed.TrainStep(step)))
	result := must.M1(fit.Run(ctx, state, training.Batches(16), loop.Until(loop.Steps(200))))
	fmt.Println("loss below 0.01:", must.M1(result.History.Last("loss")) < 0.01)
	must.M(state.Close())
	must.M(runtime.Close())
	// Output:
	// loss below 0.01: true
}

func Example_lightningResume() {
	ctx, strategy, dir := context.Background(), jit(), must.M1(os.MkdirTemp("", "from-lightning-"))
	defer os.RemoveAll(dir)
	training := line(64)
	run := func(steps int64) (rows int) {
		state := must.M1(managed.New(strategy, managed.WithOptimizer(optim.New(0.1, optim.Adam{}))))
		keep := []checkpoint.Retention{{Last: 1, Best: 3, Metric: "loss"}} // save_last, save_top_k=3, monitor
		fit := loop.New(loop.On(loop.EachStep, managed.TrainStep(regression)))
		result := must.M1(fit.Run(ctx, state, training.Batches(16, data.Shuffle(1)),
			checkpoint.Resume(dir, checkpoint.Every(loop.Steps(20)), checkpoint.Options{Keep: keep}), // ckpt_path="last"
			loop.Until(loop.Steps(steps))))
		must.M(state.Close())
		return result.History.Len()
	}
	fmt.Println("rows of the history:", run(30), "and", run(50))
	// Output:
	// rows of the history: 30 and 50
}

func Example_lightningOptimizers() {
	ctx, strategy := context.Background(), jit()
	training := line(64)
	network := func(scope *model.Scope, x *graph.Node) *graph.Node {
		return nn.Dense{Units: 1}.Apply(scope.In("out"), graph.Tanh(nn.Dense{Units: 8}.Apply(scope.In("hidden"), x)))
	}
	fake := func(b *managed.Builder) *graph.Node {
		return network(b.Scope().In("generator"), b.Scope().RandomNormal(b.Graph(), b.Field("y").Shape()))
	}
	judged := func(b *managed.Builder, x *graph.Node, sign float64) *graph.Node {
		return graph.ReduceAllMean(graph.Softplus(graph.MulScalar(network(b.Scope().At("discriminator"), x), sign)))
	}
	discriminate := func(b *managed.Builder) {
		b.Loss("d_loss", graph.Add(judged(b, b.Field("y"), -1), judged(b, graph.StopGradient(fake(b)), 1)))
	}
	generate := func(b *managed.Builder) { b.Loss("g_loss", judged(b, fake(b), -1)) }
	of := func(scope string, build managed.Build) *managed.Stepper { // toggle_optimizer: this scope alone, its own optimizer
		return managed.TrainStep(build, managed.WithStepOptimizer(scope, optim.New(2e-3, optim.Adam{Beta1: 0.5})),
			managed.TrainOnly(func(name string) bool { return strings.HasPrefix(name, "/"+scope+"/") }))
	}
	state := must.M1(managed.New(strategy))
	fit := loop.New(
		loop.On(loop.EachStep, of("discriminator", discriminate)),
		loop.On(loop.Every(loop.Steps(2)), of("generator", generate)))
	result := must.M1(fit.Run(ctx, state, training.Batches(16), loop.Until(loop.Steps(20))))
	losses := must.M1(result.History.Collect("g_loss"))[0]
	fmt.Println(len(must.M1(result.History.Collect("d_loss"))[0]), len(losses), math.IsNaN(losses[len(losses)-1]))
	must.M(state.Close())
	// Output:
	// 20 10 false
}

// module is a state of the user's own with steps and hooks as methods.
type module struct {
	*managed.State
	train, test *managed.Stepper
	epochs      int
}

func (m *module) TrainStep(ctx context.Context, batch data.Batch) (*module, loop.Logs, error) {
	_, logs, err := m.train.Step(ctx, m.State, batch)
	return m, logs, err
}

func (m *module) TestStep(ctx context.Context, batch data.Batch) (*module, loop.Logs, error) {
	_, logs, err := m.test.Step(ctx, m.State, batch)
	return m, logs, err
}

func (m *module) EpochEnd(ctx context.Context, turn *loop.Turn[*module, data.Batch]) error {
	m.epochs++
	turn.Logs.Metric("epoch", float64(m.epochs))
	return nil
}

func Example_lightningHooks() {
	ctx, training := context.Background(), line(64)
	m := &module{State: must.M1(managed.New(jit(), managed.WithOptimizer(optim.New(0.1)))), train: managed.TrainStep(regression), test: managed.TestStep(regression)}
	validation := training.Batches(64)
	trainer := train.Of[*module, data.Batch]() // its TrainStep
	trainer.Epoch = loop.Steps(4)
	trainer.Tests = []loop.Evaluation[*module, data.Batch]{train.TestOf[*module](validation)}
	trainer.Hooks = []train.Hooks[*module, data.Batch]{
		{Name: "module", EpochEnd: train.Method((*module).EpochEnd)}, // on_train_epoch_end
		{Begin: func(ctx context.Context, turn *loop.Turn[*module, data.Batch]) error { // on_train_start
			turn.Logs.Metric("epoch", 0)
			return nil
		}},
	}
	result := must.M1(trainer.Run(ctx, m, training.Batches(16, data.Shuffle(0)), loop.Until(loop.Steps(12))))
	fmt.Println(must.M1(result.History.Collect("epoch"))[0])
	must.M(m.Close())
	// Output:
	// [0 1 2 3]
}

func Example_lightningThaw() {
	ctx, strategy, training := context.Background(), jit(), line(64)
	step := func(b *managed.Builder) {
		h := nn.Dense{Units: 4}.Apply(b.Scope().In("backbone"), b.Field("x"))
		b.Loss("loss", losses.SquaredError(b.Field("y"), nn.Dense{Units: 1}.Apply(b.Scope().In("head"), h)))
	}
	state := must.M1(managed.New(strategy, managed.WithOptimizer(optim.New(0.01, optim.Adam{}))))
	thawed := loop.After(loop.Steps(11)) // unfreeze_backbone_at_epoch: after 10 frozen steps
	head := managed.TrainOnly(func(name string) bool { return strings.HasPrefix(name, "/head/") })
	fit := loop.New(
		loop.On(thawed.Not(), managed.TrainStep(step, head)),
		loop.On(thawed, managed.TrainStep(step)))
	var before, frozen, after string
	note := func(in *string) func(context.Context, loop.Report) error {
		return func(context.Context, loop.Report) error {
			*in = fmt.Sprint(must.M1(state.Value("/backbone/kernel")).Value())
			return nil
		}
	}
	must.M1(fit.Run(ctx, state, training.Batches(16), loop.Until(loop.Steps(20)),
		loop.Watch(loop.At(loop.Steps(1)), note(&before)), loop.Watch(loop.At(loop.Steps(10)), note(&frozen)), loop.Watch(loop.AtEnd, note(&after))))
	fmt.Println("frozen:", before == frozen, "thawed:", after != frozen)
	must.M(state.Close())
	// Output:
	// frozen: true thawed: true
}
