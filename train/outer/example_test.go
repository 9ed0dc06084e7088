package outer_test

import (
	"context"
	"fmt"
	"time"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
	"github.com/lazo-ml/lazo/train/outer"
)

// descend is one step of gradient descent on (w-batch)².
func descend(_ context.Context, w, batch float64) (float64, loop.Logs, error) {
	var logs loop.Logs
	logs.Loss("loss", (w-batch)*(w-batch))
	return w - 0.1*2*(w-batch), logs, nil
}

// measure is the loss alone.
func measure(_ context.Context, w, batch float64) (float64, loop.Logs, error) {
	var logs loop.Logs
	logs.Loss("loss", (w-batch)*(w-batch))
	return w, logs, nil
}

// fours is data of n batches.
func fours(n int) loop.Data[float64] {
	return func(yield func(float64, error) bool) {
		for range n {
			if !yield(4, nil) {
				return
			}
		}
	}
}

func ExampleLoop() {
	training := outer.Loop[float64, float64]{
		Train: loop.StepFunc[float64, float64](descend),
		Data: func(_ context.Context, from loop.Elapsed) (loop.Data[float64], error) {
			return fours(1000 - int(from.Steps)), nil
		},
		TotalSteps: 25,
		LoopSteps:  10,
		Evals: []outer.Eval[float64, float64]{{
			Test: train.Test[float64, float64]{Name: "test",
				Step: loop.StepFunc[float64, float64](measure),
				Data: loop.Fixed(fours(3))},
		}},
		End: []outer.Action[float64]{{Name: "print", Do: func(_ context.Context, at outer.Border[float64]) error {
			loss, err := at.Outputs().Float("loss")
			if err != nil {
				return err
			}
			test, err := at.Evaluations["test"].Outputs().Float("loss")
			fmt.Printf("inner loop %d, step %d: loss %.3f, test loss %.5f\n", at.Number, at.Elapsed.Steps, loss, test)
			return err
		}}},
	}
	result, err := training.Run(context.Background(), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s after %d inner loops: w = %.2f\n", result.Reason, result.Loops, result.State)
	// Output:
	// inner loop 1, step 10: loss 4.393, test loss 0.18447
	// inner loop 2, step 20: loss 0.051, test loss 0.00213
	// inner loop 3, step 25: loss 0.001, test loss 0.00023
	// until reached after 3 inner loops: w = 3.98
}

// A stop is a value: the state and the reason are in the result.
func ExampleLoop_stop() {
	training := outer.Loop[float64, float64]{
		Train:      loop.StepFunc[float64, float64](descend),
		Data:       func(context.Context, loop.Elapsed) (loop.Data[float64], error) { return fours(1000), nil },
		TotalSteps: outer.AllData,
		LoopSteps:  10,
		End: []outer.Action[float64]{{Name: "good enough", Do: func(_ context.Context, at outer.Border[float64]) error {
			if loss, err := at.Outputs().Float("loss"); err != nil || loss > 0.1 {
				return err
			}
			return loop.ErrStop
		}}},
	}
	result, err := training.Run(context.Background(), 0)
	fmt.Println(result.Reason, result.Elapsed.Steps, err)
	fmt.Println(result.Stop)
	// Output:
	// stopped 20 <nil>
	// loop: step 20: every 10 steps, at end: action good enough: stop
}

// inMemory stands for a folder of checkpoints.
type inMemory map[int64]float64

func (m inMemory) Steps(context.Context) (steps []int64, err error) {
	for step := range m {
		steps = append(steps, step)
	}
	return steps, nil
}

func (m inMemory) Restore(_ context.Context, _ float64, step int64) (float64, loop.Elapsed, error) {
	return m[step], loop.Elapsed{Steps: step}, nil
}

func ExampleContinuous() {
	checkpoints := inMemory{10: 3.57, 20: 3.95}
	evaluation := outer.Continuous[float64, float64]{
		Checkpoints: checkpoints,
		Stop:        func(context.Context) (bool, error) { return true, nil }, // no more will come
		Poll:        time.Minute,
		Evals: []outer.Eval[float64, float64]{{
			Test: train.Test[float64, float64]{Name: "test",
				Step: loop.StepFunc[float64, float64](measure),
				Data: loop.Fixed(fours(3))},
			End: []outer.Action[float64]{{Do: func(_ context.Context, at outer.Border[float64]) error {
				loss, err := at.Outputs().Float("loss")
				fmt.Printf("checkpoint of step %d: test loss %.4f\n", at.Elapsed.Steps, loss)
				return err
			}}},
		}},
	}
	result, err := evaluation.Run(context.Background(), 0)
	fmt.Println(result.Reason, result.State, err)
	// Output:
	// checkpoint of step 10: test loss 0.1849
	// checkpoint of step 20: test loss 0.0025
	// data ended 3.95 <nil>
}

func ExampleGroup() {
	var group outer.Group
	group.Go("save", func() error { return fmt.Errorf("disk full") })
	fmt.Println(group.Wait())
	fmt.Println(group.Wait()) // an error surfaces once
	// Output:
	// background: save: disk full
	// <nil>
}
