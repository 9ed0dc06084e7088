package register_test

import (
	"fmt"
	"log"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"

	_ "github.com/lazo-ml/lazo/xla/register"
)

// A program of GoMLX runs on lazo. GOMLX_BACKEND overrides DefaultConfig.
func Example() {
	compute.DefaultConfig = "lazo:cpu"
	backend, err := compute.New()
	if err != nil {
		log.Fatal(err)
	}
	defer backend.Finalize()
	sum, err := graph.CallOnce(backend, func(x *graph.Node) *graph.Node { return graph.ReduceAllSum(x) }, []float32{1, 2, 3})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum.Value())
	// Output: 6
}
