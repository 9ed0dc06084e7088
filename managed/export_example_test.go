package managed_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/export"
)

// A model goes into a folder, and comes back as a program that needs no model function any more.
func ExampleExportModel() {
	runtime, err := xla.Open(context.Background(), xla.CPU)
	if err != nil {
		log.Fatal(err)
	}
	defer runtime.Close()
	state, err := managed.New(strategies.Jit(runtime)) // trained, mostly
	if err != nil {
		log.Fatal(err)
	}
	defer state.Close()
	model := func(b *managed.Builder) map[string]*graph.Node {
		return map[string]*graph.Node{"logits": layers.Dense(b.Scope().In("dense"), b.Field("x"), true, 3)}
	}
	parent, err := os.MkdirTemp("", "example-*")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "model")
	batch := data.Batch{Fields: []data.Field{data.X(make([]float32, 2*4), 2, 4)}} // its shapes count
	if err := managed.ExportModel(dir, state, batch, model, managed.ExportOptions{}); err != nil {
		log.Fatal(err)
	}

	program, err := export.Load(dir)
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range program.Inputs {
		fmt.Println("in ", v.Name, v.Role, v.Shape)
	}
	for _, v := range program.Outputs {
		fmt.Println("out", v.Name, v.Role, v.Shape)
	}
	compiled, err := program.Compile(runtime)
	if err != nil {
		log.Fatal(err)
	}
	defer compiled.Close()
	outputs, err := compiled.Run(map[string]*tensors.Tensor{"x": tensors.FromValue([][]float32{{0, 0, 0, 0}, {0, 0, 0, 0}})})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(outputs["logits"].Value())
	// Output:
	// in  x batch (Float32)[2, 4]
	// in  /dense/dense/weights state (Float32)[4, 3]
	// in  /dense/dense/biases state (Float32)[3]
	// out logits output (Float32)[2, 3]
	// [[0 0 0] [0 0 0]]
}
