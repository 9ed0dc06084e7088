// Command export trains two small models on the digits and writes each, with its weights and one run, into a folder that
// needs no Go any more: go run ./examples/export DIR. `make export-check` runs it, and then loads the folders in JAX.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/layers/activations"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

type model func(vars *managed.Vars, x *managed.Node) *managed.Node

func mlp(vars *managed.Vars, x *managed.Node) *managed.Node {
	x = activations.Relu(layers.Dense(vars.In("hidden"), graph.Reshape(x, -1, 64), true, 64))
	return layers.Dense(vars.In("logits"), x, true, 10)
}

func cnn(vars *managed.Vars, x *managed.Node) *managed.Node {
	x = graph.Reshape(x, -1, 8, 8, 1)
	x = activations.Relu(layers.Convolution(vars.In("conv"), x).Channels(16).KernelSize(3).PadSame().Done())
	x = graph.MaxPool(x).Window(2).Done()
	return layers.Dense(vars.In("logits"), graph.Reshape(x, -1, 4*4*16), true, 10)
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: export DIR")
	}
	runtime, err := xla.Open(context.Background(), xla.CPU, xla.InstallIfMissing(func(line string) { log.Print(line) }))
	check(err)
	defer runtime.Close()
	train, test, err := data.Digits()
	check(err)
	for name, f := range map[string]model{"mlp": mlp, "cnn": cnn} {
		check(export(filepath.Join(os.Args[1], name), strategies.Jit(runtime), train, test, f))
	}
}

func export(dir string, on strategies.Strategy, train, test *data.Set, f model) error {
	state, err := managed.New(on, managed.WithOptimizer(optimizers.Adam().Done()))
	if err != nil {
		return err
	}
	step := managed.TrainStep(func(b *managed.Builder) {
		b.Loss("loss", managed.CrossEntropy(b.Node("y"), f(b.Vars(), b.Node("x"))))
	})
	training := loop.New(loop.On(loop.EachStep, step))
	if _, err := training.Run(context.Background(), state, train.Batches(32, data.Shuffle(0), data.Forever()), loop.Until(loop.Steps(200))); err != nil {
		return err
	}
	predict := func(b *managed.Builder) map[string]*managed.Node {
		logits := f(b.Vars(), b.Node("x"))
		return map[string]*managed.Node{"logits": logits, "class": graph.ArgMax(logits, -1)}
	}
	for batch, err := range test.Batches(32) {
		if err != nil {
			return err
		}
		// The step wants the labels too, the model the images alone.
		if err := step.Export(dir+"-step", state, batch, managed.WithExample()); err != nil {
			return err
		}
		batch.Fields = batch.Fields[:1]
		if err := managed.ExportModel(dir, state, batch, predict, managed.WithExample()); err != nil {
			return err
		}
		fmt.Println("exported", dir, "and", dir+"-step")
		break
	}
	return nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
