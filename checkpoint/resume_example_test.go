package checkpoint_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/lazo-ml/lazo/checkpoint"
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
		from := int64(0)
		begins := loop.Watch(loop.AtStart, func(_ context.Context, r loop.Report) error { from = r.From.Steps; return nil })
		result, err := counting().Run(ctx, &counter{Rate: 1}, loop.From(numbered), loop.Until(until), begins,
			checkpoint.Resume(dir, checkpoint.Every(loop.Steps(25))))
		fmt.Printf("from step %d to %d, %d rows, %v\n", from, result.Elapsed.Steps, result.History.Len(), err)
	}
	program(40)
	program(100)
	// Output:
	// from step 0 to 40, 40 rows, <nil>
	// from step 40 to 100, 100 rows, <nil>
}
