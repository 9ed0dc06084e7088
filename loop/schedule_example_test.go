package loop_test

import (
	"fmt"

	"github.com/lazo-ml/lazo/loop"
)

// Often at first, then rarely: a schedule can be asked without a loop.
func ExampleSchedule_Then() {
	often := loop.Every(loop.Steps(2)).Then(
		loop.Steps(6), loop.Every(loop.Steps(10)))

	fmt.Println(often)
	for step := range int64(30) {
		if often.Due(loop.Elapsed{Steps: step}, loop.Elapsed{Steps: step + 1}) {
			fmt.Print(step+1, " ")
		}
	}
	// Output:
	// every 2 steps; after 6 steps, every 10 steps
	// 2 4 6 16 26
}

// A mistake in a schedule is known before a run.
func ExampleSchedule_Err() {
	fmt.Println(loop.EachStep.Or(loop.Never.Then(loop.Steps(3), loop.Every(loop.Steps(0)))).Err())
	// Output:
	// every 0 steps: period must be positive, got 0 steps
}
