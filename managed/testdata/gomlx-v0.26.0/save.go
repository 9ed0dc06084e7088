//go:build ignore

// Command save made the runs in this folder, with lazo of before GoMLX v0.28 (commit d306f20), wrote down how they went on, and exported
// a step: go run save.go FOLDER, in a module that requires that lazo.
package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/layers/batchnorm"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func line(n int) *data.Set {
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = float32(i%16)/8 - 1
		y[i] = 3*x[i] + 1
	}
	return must(data.New(data.X(x, n, 1), data.Y(y, n, 1)))
}

func network(vars *managed.Vars, x *managed.Node) *managed.Node {
	h := batchnorm.New(vars.In("norm"), x, -1).Done()
	h = graph.Reshape(graph.Tanh(layers.Dense(vars.In("first"), h, true, 2, 4)), -1, 8)
	h = layers.Dropout(vars.In("drop"), h, graph.Scalar(x.Graph(), h.DType(), 0.1))
	return layers.Dense(vars.In("last"), h, true, 1)
}

func whole(b *managed.Builder) {
	y := network(b.Vars(), b.Node("x"))
	b.Loss("loss", managed.MeanSquaredError(b.Node("y"), y))
	b.Metric("steps", b.Steps())
	b.Mean("mean", y)
}

func part(name string, rule managed.Optimizer) loop.Task[*managed.State, data.Batch] {
	return loop.On(loop.EachStep, managed.TrainStep(func(b *managed.Builder) {
		sum := graph.Add(network(b.Vars().In("one"), b.Node("x")), network(b.Vars().In("two"), b.Node("x")))
		b.Loss(name+"_loss", managed.MeanSquaredError(b.Node("y"), sum))
		b.Metric(name+"_steps", b.Steps())
	}, managed.By(name, rule), managed.Only(func(v string) bool { return strings.HasPrefix(v, "/"+name+"/") })))
}

func main() {
	adam := optimizers.Adam().LearningRate(0.02).Done()
	chain := optim.New(0.02, optim.ClipByGlobalNorm(1), optim.Adam{}, optim.WeightDecay{Rate: 0.01},
		optim.ScaleBySchedule(optim.Cosine(1, 0.5, 40)), optim.Average{Decay: 0.9})
	step := managed.TrainStep(whole)
	training := loop.New(loop.On(loop.EachStep, step))
	state := save("adam", training, "/last/dense/weights", managed.WithOptimizer(adam))
	for batch := range line(4).Batches(4) {
		must(0, step.Export(filepath.Join(os.Args[1], "export"), state, batch, managed.WithExample()))
	}
	save("chain", training, "/last/dense/weights", managed.WithOptimizer(chain))
	save("two", loop.New(part("one", adam), part("two", optim.New(0.02, optim.Adam{}, optim.Momentum(0.5)))), "/one/last/dense/weights")
}

// save saves a run at step 20, and writes down steps 21 to 45.
func save(name string, training loop.Loop[*managed.State, data.Batch], weights string, options ...managed.Option) *managed.State {
	ctx := context.Background()
	state := must(managed.New(strategies.Jit(must(xla.Open(ctx, "cpu"))), append(options, managed.WithSeed(5))...))
	folder := must(checkpoint.Open(filepath.Join(os.Args[1], name), checkpoint.Options{}))
	batches := line(80).Batches(16, data.Shuffle(3))
	at := must(training.Run(ctx, state, batches, loop.Until(loop.Steps(20)), checkpoint.Save(folder, loop.Every(loop.Steps(20))))).Elapsed
	must(0, folder.Close())
	batches = line(80).Batches(16, data.Shuffle(3))
	rest := must(training.Run(ctx, state, batches, loop.Continue(at, nil), loop.Until(loop.Steps(45)))).History
	figures := map[string][]float64{}
	for _, series := range []string{"loss", "one_loss", "two_loss", "steps", "one_steps", "mean"} {
		if _, v, err := rest.Series(series); err == nil {
			figures[series] = v
		}
	}
	must(0, must(state.Value(weights)).ConstFlatData(func(flat any) {
		for _, x := range flat.([]float32) {
			figures["weights"] = append(figures["weights"], float64(x))
		}
	}))
	must(0, os.WriteFile(filepath.Join(os.Args[1], name+".json"), must(json.MarshalIndent(figures, "", " ")), 0o644))
	return state
}
