package runs_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/runs"
	"github.com/lazo-ml/lazo/loop"
)

// A program that can be stopped and started at any time. Its state here is one of plain Go with the methods Content and
// Restore; a managed.State has them.
func ExampleResume() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	program := func(until loop.Steps) {
		folder, err := checkpoint.Open(dir, checkpoint.Options{Keep: []checkpoint.Retention{checkpoint.Last(2), checkpoint.Lowest(1, "test")}})
		if err != nil {
			log.Fatal(err)
		}
		defer folder.Close()
		state := &counter{Rate: 1}
		start, err := runs.Resume(ctx, folder, state)
		if err != nil {
			log.Fatal(err)
		}
		batches := numbered(start.Elapsed.Steps) // as data.Skip does
		result, err := counting().Run(ctx, state, loop.Data[int64](batches), start.Option(),
			runs.Save(folder, loop.Every(loop.Steps(25))), loop.Until(until))
		fmt.Printf("from step %d to %d, %d rows, %v\n", start.Elapsed.Steps, result.Elapsed.Steps, result.History.Len(), err)
	}
	program(40)
	program(100)
	// Output:
	// from step 0 to 40, 40 rows, <nil>
	// from step 40 to 100, 100 rows, <nil>
}
