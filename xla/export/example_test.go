package export_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/export"
)

// A program is written to a folder, loaded, and run.
func ExampleLoad() {
	parent, err := os.MkdirTemp("", "example-*")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "double")
	shape := shapes.Make(dtypes.Float32, 2)
	double := export.Program{
		Name: "double",
		Text: `module {
  func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = stablehlo.add %x, %x : tensor<2xf32>
    return %y : tensor<2xf32>
  }
}`,
		Inputs:  []export.Value{{Name: "x", Role: export.Batch, Shape: shape}},
		Outputs: []export.Value{{Name: "y", Role: export.Output, Shape: shape}},
	}
	if err := double.Write(dir); err != nil {
		log.Fatal(err)
	}

	program, err := export.Load(dir)
	if err != nil {
		log.Fatal(err)
	}
	runtime, err := xla.Open(context.Background(), xla.CPU)
	if err != nil {
		log.Fatal(err)
	}
	defer runtime.Close()
	model, err := program.Compile(runtime)
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	outputs, err := model.Run(map[string]*tensors.Tensor{"x": tensors.FromValue([]float32{1, 2})})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(outputs["y"].Value())
	// Output: [2 4]
}
