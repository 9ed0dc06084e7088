package spmd_test

import (
	"fmt"
	"log"

	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/spmd"
)

// The sum of an array of which each of two partitions has one half.
const sum = `module @sum {
  sdy.mesh @mesh = <["data"=2]>
  func.func public @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> tensor<f32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %y = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}`

// From one program to that of two processes. Package xla does this for GoMLX graphs.
func Example() {
	installed, err := install.Find("cpu", "")
	if err != nil {
		log.Fatal(err)
	}
	plugin, err := pjrt.Load(installed.Path)
	if err != nil {
		log.Fatal(err)
	}
	client, err := plugin.NewClient(map[string]any{"cpu_device_count": int64(2)}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	part, err := client.Partition([]byte(sum), pjrt.CompileOptions{Partitions: 2, SPMD: true, Shardy: true})
	if err != nil {
		log.Fatal(err)
	}
	program, found, err := spmd.Rewrite(part, 2) // each of two processes compiles it by Client.CompileHLO
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(program) > 0)
	for _, call := range found.Calls {
		fmt.Printf("%s of %d bytes\n", call.Target, call.Bytes)
	}
	// Output:
	// true
	// lazo.all_reduce of 4 bytes
}
