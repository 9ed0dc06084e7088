package loop_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/loop"
)

// Two evaluations in one training, each with its own data. A step adds the batch to the state.
func ExampleEvaluation() {
	step := func(_ context.Context, sum, n int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Metric("sum", float64(sum+n))
		return sum + n, logs, nil
	}
	testing := loop.New(loop.On(loop.EachStep, loop.StepFunc(step)))
	test := loop.Evaluation[int, int]{
		Name: "test", Loop: testing,
		Data:      numbers(3),
		Aggregate: map[loop.Collection]loop.Aggregation{loop.Metrics: aggregateMax},
	}
	quick := test
	quick.Name, quick.Options = "quick", []loop.Option{loop.Until(loop.Steps(1))}

	training := loop.New(
		loop.On(loop.EachStep, loop.StepFunc(step)),
		quick.On(loop.Every(loop.Steps(2))),
		test.On(loop.AtEnd))
	result, err := training.Run(context.Background(), 0, numbers(5))
	for at, logs := range result.History.Rows() {
		fmt.Print(loop.Steps(at.Steps), ":")
		for e := range logs.All() {
			v, _ := e.Value.Float()
			fmt.Printf(" %s=%g", e.Name, v)
		}
		fmt.Println()
	}
	fmt.Println(result.State, err)
	// Output:
	// 1 step: sum=0
	// 2 steps: sum=1 sum_quick=1
	// 3 steps: sum=3
	// 4 steps: sum=6 sum_quick=6
	// 5 steps: sum=10
	// 5 steps: sum_test=13
	// 10 <nil>
}

// In a loop that is written by hand, an evaluation is a call.
func ExampleEvaluation_Run() {
	test := loop.Evaluation[int, int]{
		Name: "test", Loop: loop.New(loop.On(loop.EachStep, loop.StepFunc(add))),
		Data: numbers(4),
	}
	_, logs, err := test.Run(context.Background(), 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(logs.Float("sum_test"))
	// Output: 12.5 <nil>
}

// A program that ended by a signal exits with the code of the signal.
func ExampleSignalError_ExitCode() {
	err := fmt.Errorf("loop: step 300: cancelled: %w", &loop.SignalError{Signal: 15})
	if by, ok := errors.AsType[*loop.SignalError](err); ok {
		fmt.Println(by.ExitCode())
	}
	// Output: 143
}

// A custom aggregation: the spread of the values of a run.
func ExampleAggregation() {
	spread := loop.Aggregation{Name: "spread", Of: func(values, _ []float64) float64 {
		low, high := values[0], values[0]
		for _, v := range values {
			low, high = min(low, v), max(high, v)
		}
		return high - low
	}}
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(context.Background(), 0, numbers(5))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.History.Aggregate(map[loop.Collection]loop.Aggregation{loop.Metrics: spread}).Float("sum"))
	// Output: 10 <nil>
}
