package callbacks_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

func ExampleStopEarly() {
	training, data := following("mse", 5, 3, 4, 3.5, 6, 7)
	result, err := training.Run(context.Background(), 0, data, callbacks.StopEarly("mse", loop.Steps(3)))
	fmt.Println(result.Reason, err)
	var early *callbacks.EarlyStopError
	if errors.As(result.Stop, &early) {
		fmt.Printf("best %g in step %d\n", early.Best, early.At.Steps)
	}
	// Output:
	// stopped <nil>
	// best 3 in step 2
}

// By hand, it is asked in the passes in which the entry was logged.
func Example_byHand() {
	stop, err := callbacks.StopEarly("mse", callbacks.Evaluations(2)).Start(loop.Beginning{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	mse := []float64{5, 3, 4, 3.5, 6, 7}
	for pass := range loop.Over(numbers(len(mse))) {
		var logs loop.Logs
		logs.Loss("mse", mse[pass.Batch])
		if err := stop.Watch(ctx, pass.Report(logs, nil)); errors.Is(err, loop.ErrStop) {
			fmt.Printf("step %d: %v\n", pass.Elapsed.Steps, err)
			break
		}
	}
	// Output:
	// step 4: no value of mse below 3 (of step 2) for 2 evaluations: stop
}

func ExampleKeepBest() {
	training, data := following("mse", 5, 3, 4, 6) // its state is the number of the step
	result, _ := training.Run(context.Background(), 0, data, callbacks.KeepBest("mse"))
	best, _, err := result.History.Best("mse", loop.Lowest)
	fmt.Println(result.State, result.Elapsed.Steps, best, err)
	// Output:
	// 2 4 3 <nil>
}

func ExampleOnBest() {
	training, data := following("accuracy", 0.5, 0.7, 0.6, 0.8)
	save := func(_ context.Context, r loop.Report) error {
		accuracy, err := r.Logs.Float("accuracy")
		fmt.Printf("step %d: save %v, %g\n", r.Elapsed.Steps, r.State(), accuracy)
		return err
	}
	_, err := training.Run(context.Background(), 0, data, callbacks.OnBest("accuracy", save))
	fmt.Println(err)
	// Output:
	// step 1: save 1, 0.5
	// step 2: save 2, 0.7
	// step 4: save 4, 0.8
	// <nil>
}

func ExampleNonFinite() {
	training, data := following("loss", 3, 2, math.NaN(), 1)
	_, err := training.Run(context.Background(), 0, data, callbacks.NonFinite())
	fmt.Println(err)
	report := callbacks.Recovery{OnUndo: func(_ context.Context, r loop.Report, cause error) error {
		fmt.Printf("step %d: %v; back to %v\n", r.Elapsed.Steps, cause, r.State())
		return nil
	}}
	result, err := training.Run(context.Background(), 0, data, callbacks.NonFinite(callbacks.Recovery{Limit: 10}, report))
	fmt.Println(result.State, result.Elapsed.Steps, err)
	// Output:
	// loop: step 3: each step, at start, at end: non-finite: fail run: losses.loss is NaN: not a finite number
	//   frequent causes: labels outside the classes, a learning rate too high, unscaled inputs, log or division of 0; strategies.Eager with strategies.CheckFinite names the operation
	// step 3: losses.loss is NaN: not a finite number; back to 2
	// 4 4 <nil>
}

func ExampleRecovery() {
	training, data := following("loss", 5, 4, 3, 3, 2, math.NaN())
	copies := loop.Every(loop.Steps(2))
	result, err := training.Run(context.Background(), 0, data, callbacks.NonFinite(callbacks.Recovery{Limit: 3, Copies: copies}))
	fmt.Println(result.State, err)
	// Output:
	// 4 <nil>
}

func ExampleWarnSpike() {
	training, data := following("loss", 2, 2.2, 1.8, 12, 1.9)
	_, err := training.Run(context.Background(), 0, data, callbacks.WarnSpike("loss", 4, 3, func(_ context.Context, s callbacks.Spike) error {
		fmt.Println(s)
		return nil
	}))
	fmt.Println(err)
	// Output:
	// step 4: loss is 12, 6 times the median 2 of the last 3 values
	// <nil>
}

func ExampleReduceOnPlateau() {
	training, data := followingInPlace("loss", 3, 2, 2, 2, 2, 2, 2)
	say := callbacks.Monitor{OnReduce: func(_ context.Context, r loop.Report, from, to float64) error {
		fmt.Printf("step %d: %g, then %g\n", r.Elapsed.Steps, from, to)
		return nil
	}}
	_, err := training.Run(context.Background(), &cell{rate: 0.1}, data,
		callbacks.ReduceOnPlateau("loss", 0.5, callbacks.Evaluations(2), callbacks.Monitor{Cooldown: callbacks.Evaluations(1)}, say))
	fmt.Println(err)
	// Output:
	// step 4: 0.1, then 0.05
	// step 7: 0.05, then 0.025
	// <nil>
}

func ExampleTimeLimit() {
	training := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)))
	result, err := training.Run(context.Background(), 0, loop.Data[int](forever), callbacks.TimeLimit(time.Millisecond))
	fmt.Println(result.Reason, errors.Is(result.Stop, loop.ErrStop), err)
	// Output:
	// stopped true <nil>
}
