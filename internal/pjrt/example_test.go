package pjrt_test

import (
	"fmt"
	"log"

	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

const double = `module {
  func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = stablehlo.add %x, %x : tensor<2xf32>
    return %y : tensor<2xf32>
  }
}`

// From a plugin's file to the numbers of a program. Package xla does all of this for GoMLX graphs.
func Example() {
	installed, err := install.Find("cpu", "")
	if err != nil {
		log.Fatal(err)
	}
	plugin, err := pjrt.Load(installed.Path)
	if err != nil {
		log.Fatal(err)
	}
	client, err := plugin.NewClient(map[string]any{"cpu_device_count": int64(1)}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close() // and all objects made with it
	executable, err := client.Compile([]byte(double), pjrt.CompileOptions{})
	if err != nil {
		log.Fatal(err)
	}
	x, err := client.Devices()[0].Put(pjrt.Array{
		Shape: pjrt.Shape{DType: pjrt.Float32, Dims: []int{2}}, Data: pjrt.Bytes([]float32{1, 2}),
	})
	if err != nil {
		log.Fatal(err)
	}
	run, err := executable.Execute([][]*pjrt.Buffer{{x}}, pjrt.ExecuteOptions{})
	if err != nil {
		log.Fatal(err)
	}
	y := make([]float32, 2)
	if err := run.Outputs[0][0].ToHost(pjrt.Bytes(y)); err != nil { // waits for the run
		log.Fatal(err)
	}
	fmt.Println(y)
	// Output: [2 4]
}
