package loop_test

import (
	"context"
	"fmt"

	"github.com/lazo-ml/lazo/loop"
)

// A state can be anything. Here it is a number, and a step adds the batch to it.
func Example() {
	step := func(_ context.Context, sum, n int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Metric("sum", float64(sum+n))
		return sum + n, logs, nil
	}
	show := func(_ context.Context, r loop.Report) error {
		sum, err := r.Logs.Float("sum")
		fmt.Printf("after %s: %g\n", loop.Steps(r.Elapsed.Steps), sum)
		return err
	}
	adding := loop.New(loop.On(loop.EachStep, loop.StepFunc(step)))
	result, err := adding.Run(context.Background(), 0, numbers(100), loop.Until(loop.Steps(10)), loop.Watch(loop.Every(loop.Steps(5)), show))
	fmt.Println(result.State, result.Reason, err)
	// Output:
	// after 5 steps: 10
	// after 10 steps: 45
	// 45 until reached <nil>
}
