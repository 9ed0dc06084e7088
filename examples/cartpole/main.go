// Command cartpole balances a pole on a cart by reinforcement learning: docs/state-dependent-data.md.
//
//	go run ./examples/cartpole                REINFORCE: the step's program plays the episodes (reinforce.go)
//	go run ./examples/cartpole -method ppo    PPO: the source plays with the policy and repeats its rollouts (ppo.go)
//	go run ./examples/cartpole -method dqn    DQN: the source plays, and draws batches from what it saw (dqn.go)
//
// With -dir FOLDER a run saves checkpoints with its source's data, and resumes when started again. It ends when the
// greedy policy balances the pole for a mean of 475 of 500 steps over 100 episodes.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

const solved = 475

type method struct {
	step  managed.Build
	data  func(agent) loop.Source[data.Batch]
	rate  float64
	tests loop.Steps
	until loop.Steps
}

var methods = map[string]method{
	"reinforce": {step: reinforce, data: nothing, rate: 3e-3, tests: 10, until: 200},
	"ppo":       {step: ppo, data: newRollout, rate: 1e-3, tests: updates, until: 100 * updates},
	"dqn":       {step: dqn, data: newReplay, rate: 1e-3, tests: 256, until: 30_000},
}

func main() {
	must.M = loop.Exit
	name, seed := flag.String("method", "reinforce", "reinforce, ppo or dqn"), flag.Int64("seed", 0, "of all random numbers")
	dir := flag.String("dir", "", "a folder for checkpoints: a run that was ended there is resumed; without it nothing is saved")
	flag.Parse()
	m, found := methods[*name]
	if !found {
		must.M(fmt.Errorf("-method %s: must be reinforce, ppo or dqn", *name))
	}
	ctx, stop := loop.WithSignals(context.Background())
	defer stop()
	runtime := must.M1(xla.Open(ctx, xla.CPU, xla.InstallIfMissing(func(line string) { log.Print(line) })))
	result := must.M1(learn(ctx, m, runtime, *seed, *dir, callbacks.ProgressBar(os.Stderr)))
	at, returns := must.M2(result.History.Series("return_test"))
	for i, r := range returns {
		fmt.Printf("%6d steps: mean return %.2f\n", at[i].Steps, r)
	}
}

func learn(ctx context.Context, m method, runtime *xla.Runtime, seed int64, dir string, options ...loop.Option) (loop.Result[*managed.State], error) {
	optimizer := optim.New(m.rate, optim.Clip{GlobalNorm: 0.5}, optim.Adam{})
	state, err := managed.New(strategies.Jit(runtime), managed.WithSeed(seed), managed.WithOptimizer(optimizer))
	if err != nil {
		return loop.Result[*managed.State]{}, err
	}
	testing := loop.Evaluate("test", managed.TestStep(test), starts(100))
	learning := loop.New(loop.On(loop.EachStep, managed.TrainStep(m.step)), testing.On(loop.Every(m.tests)))
	source := m.data(agent{ctx, state, uint64(seed)})
	if dir != "" {
		saved := checkpoint.Options{Also: map[string]any{"source": source}}
		options = append(options, checkpoint.Resume(dir, checkpoint.Every(m.tests), saved))
	}
	return learning.Run(ctx, state, source, loop.Until(m.until), loop.WatchEntry("return_test", stopWhenSolved), loop.Options(options...))
}

func stopWhenSolved(_ context.Context, r loop.Report) error {
	if mean, err := r.Logs.Float("return_test"); err != nil || mean < solved {
		return err
	}
	return loop.ErrStop
}

// [..., 4] to [..., 2]: logits or Q values of the actions
func policy(b *managed.Builder, states *graph.Node) *graph.Node {
	return network(b.Scope().At("policy").ResetVisited(), states, 2)
}

func network(scope *model.Scope, states *graph.Node, outputs int) *graph.Node {
	scales := graph.Const(states.Graph(), []float32{1 / farthest, 0.5, 1 / steepest, 0.5})
	h := graph.Mul(states, graph.ExpandLeftToRank(scales, states.Rank()))
	for _, layer := range []string{"hidden_0", "hidden_1"} {
		h = nn.Relu(nn.Dense{Units: 64}.Apply(scope.In("%s", layer), h))
	}
	return nn.Dense{Units: outputs}.Apply(scope.In("out"), h)
}

func at(scores, actions *graph.Node) *graph.Node {
	return graph.ReduceSum(graph.Mul(scores, graph.OneHot(actions, 2, scores.DType())), -1)
}

func test(b *managed.Builder) {
	_, _, rewards := play(b.Field("x"), func(states *graph.Node) *graph.Node { return graph.ArgMax(policy(b, states), -1) })
	b.Metric("return", graph.ReduceSum(rewards, 0))
}

func starts(n int) data.Batches {
	random, flat := rand.New(rand.NewPCG(1, 1)), []float32{}
	for range n {
		p := draw(random)
		flat = append(flat, p[:]...)
	}
	return must.M1(data.New(data.X(flat, n, 4))).Batches(n)
}
