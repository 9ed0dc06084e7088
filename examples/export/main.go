// Command export trains five small models on the digits and exports each, with weights and one run, into a folder for
// use without Go: go run ./examples/export DIR. `make export-check` runs it and loads the folders in JAX.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/ops"
)

type network func(scope *model.Scope, x *graph.Node) *graph.Node

func mlp(scope *model.Scope, x *graph.Node) *graph.Node {
	x = nn.Relu(nn.Dense{Units: 64}.Apply(scope.In("hidden"), graph.Reshape(x, -1, 64)))
	return nn.Dense{Units: 10}.Apply(scope.In("logits"), x)
}

func cnn(scope *model.Scope, x *graph.Node) *graph.Node {
	x = graph.Reshape(x, -1, 8, 8, 1)
	x = nn.Relu(nn.Conv{Channels: 16, Window: []int{3}}.Apply(scope.In("conv"), x))
	x = graph.MaxPool(x).Window(2).Done()
	return nn.Dense{Units: 10}.Apply(scope.In("logits"), graph.Reshape(x, -1, 4*4*16))
}

func gelu(scope *model.Scope, x *graph.Node) *graph.Node {
	x = nn.Activation("gelu").Apply(scope, nn.Dense{Units: 64}.Apply(scope.In("hidden"), graph.Reshape(x, -1, 64)))
	return nn.Dense{Units: 10}.Apply(scope.In("logits"), x)
}

// lstm reads an image row by row.
func lstm(scope *model.Scope, x *graph.Node) *graph.Node {
	last := nn.LSTM{Units: 32, Last: true}.Apply(scope.In("lstm"), graph.Reshape(x, -1, 8, 8))
	return nn.Dense{Units: 10}.Apply(scope.In("logits"), last)
}

// branches has a loop that scales an image's ink, and skips a layer for bright batches.
func branches(scope *model.Scope, x *graph.Node) *graph.Node {
	x = graph.Reshape(x, -1, 64)
	level := func(x *graph.Node) *graph.Node { return graph.ReduceAllMean(x) }
	half := graph.Scalar(x.Graph(), x.DType(), 0.5)
	x = graph.StopGradient(ops.While(func(v []*graph.Node) *graph.Node { return graph.LessThan(level(v[0]), half) },
		func(v []*graph.Node) []*graph.Node { return []*graph.Node{graph.MulScalar(v[0], 1.25)} }, x)[0])
	x = graph.Tanh(nn.Dense{Units: 32}.Apply(scope.In("hidden"), x))
	more := nn.Dense{Units: 32}
	x = ops.Cond(graph.GreaterThan(level(x), graph.ScalarZero(x.Graph(), x.DType())),
		func() []*graph.Node { return []*graph.Node{graph.Tanh(more.Apply(scope.In("more"), x))} },
		func() []*graph.Node { return []*graph.Node{x} })[0]
	return nn.Dense{Units: 10}.Apply(scope.In("logits"), x)
}

func main() {
	must.M = loop.Exit
	if len(os.Args) != 2 {
		log.Fatal("usage: export DIR")
	}
	runtime := must.M1(xla.Open(context.Background(), xla.CPU, xla.InstallIfMissing(func(line string) { log.Print(line) })))
	defer runtime.Close()
	train, test := must.M2(data.Digits())
	for name, f := range map[string]network{"mlp": mlp, "gelu": gelu, "cnn": cnn, "lstm": lstm, "branches": branches} {
		export(filepath.Join(os.Args[1], name), strategies.Jit(runtime), train, test, f)
	}
}

func export(dir string, on strategies.Strategy, train, test *data.Set, f network) {
	ctx, state := context.Background(), must.M1(managed.New(on, managed.WithOptimizer(optim.New(0.001, optim.Adam{}))))
	step := managed.TrainStep(func(b *managed.Builder) {
		b.Loss("loss", losses.CrossEntropy(b.Field("y"), f(b.Scope(), b.Field("x"))))
	})
	training := loop.New(loop.On(loop.EachStep, step))
	must.M1(training.Run(ctx, state, train.Batches(32, data.Shuffle(0)), loop.Until(loop.Steps(200))))
	predict := func(b *managed.Builder) map[string]*graph.Node {
		logits := f(b.Scope(), b.Field("x"))
		return map[string]*graph.Node{"logits": logits, "class": graph.ArgMax(logits, -1)}
	}
	// Only the step needs the labels.
	batch := must.M1(data.Peek(test.Batches(32).All()))
	must.M(step.Export(dir+"-step", state, batch, managed.ExportOptions{Example: true}))
	must.M(managed.ExportModel(dir, state, batch, predict, managed.ExportOptions{Example: true}))
	fmt.Println("exported", dir, "and", dir+"-step")
}
