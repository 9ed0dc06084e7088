package strategies_test

import (
	"context"
	"fmt"
	"log"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// A step without package managed: its state is one value, to which it adds the batch.
func Example() {
	runtime, err := xla.Open(context.Background(), xla.CPU)
	if err != nil {
		log.Fatal(err)
	}
	defer runtime.Close()
	strategy := strategies.Jit(runtime)
	shape := shapes.Make(dtypes.Float32, 2)
	program, err := strategy.Compile(strategies.Step{
		Name:  "add",
		Batch: []strategies.Input{{Name: "x", Shape: shape}},
		Build: func(g *graph.Graph, batch []*graph.Node) strategies.Built {
			sum := graph.Parameter(g, "sum", shape)
			return strategies.Built{State: []strategies.Slot{{Parameter: sum, New: graph.Add(sum, batch[0])}}}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer program.Close()

	sum, err := strategy.Put("sum", tensors.FromValue([]float32{0, 0}))
	if err != nil {
		log.Fatal(err)
	}
	batch := data.Batch{Fields: []data.Field{data.X([]float32{1, 10}, 2)}}
	for range 3 {
		changed, _, running, err := program.Start([]compute.Buffer{sum}, []data.Batch{batch})
		if err == nil && running != nil {
			err = running.Wait()
		}
		if err != nil {
			log.Fatal(err)
		}
		sum = changed[0] // in place of the old value, which is used up
	}
	value, err := strategy.Fetch(sum)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(value.Value())
	if err := strategy.Free(sum); err != nil {
		log.Fatal(err)
	}
	// Output: [3 30]
}
