package train_test

import (
	"context"
	"fmt"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
)

// The shortest training: a step, and data that ends it.
func Example() {
	step := func(_ context.Context, sum, n int) (int, loop.Logs, error) { return sum + n, loop.Logs{}, nil }
	result, err := train.Loop[int, int]{Step: loop.StepFunc[int, int](step)}.Run(context.Background(), 0, upTo(10))
	fmt.Println(result.State, result.Elapsed.Steps, result.Reason, err)
	// Output: 55 10 data ended <nil>
}

// An epoch is three steps long; at its end there is a test, on data of its own.
func ExampleLoop() {
	trainStep := func(_ context.Context, sum, n int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Loss("loss", float64(10-n))
		return sum + n, logs, nil
	}
	testStep := func(_ context.Context, sum, n int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Loss("loss", float64(100-sum-n))
		return sum, logs, nil
	}
	testData := upTo(3)
	training := train.Loop[int, int]{
		Step:  loop.StepFunc[int, int](trainStep),
		Epoch: loop.Steps(3),
		Tests: []loop.Evaluation[int, int]{loop.Evaluate[int, int]("test", loop.StepFunc[int, int](testStep), testData)},
		Hooks: []train.Hooks[int, int]{{EpochEnd: func(_ context.Context, turn *loop.Turn[int, int]) error {
			loss, err := turn.Logs.Float("loss_test")
			fmt.Printf("step %d: test loss %g\n", turn.Elapsed.Steps, loss)
			return err
		}}},
	}
	_, err := training.Run(context.Background(), 0, upTo(100), loop.Until(loop.Steps(9)))
	fmt.Println(err)
	// Output:
	// step 3: test loss 92
	// step 6: test loss 77
	// step 9: test loss 53
	// <nil>
}

// line is a state with methods: the line y = slope·x, which is to become y = 2x.
type line struct{ slope float64 }

func (l line) TrainStep(_ context.Context, x float64) (line, loop.Logs, error) {
	return line{l.slope + 0.1*(2*x-l.slope*x)*x}, loop.Logs{}, nil
}

func (l line) TestStep(_ context.Context, x float64) (line, loop.Logs, error) {
	var logs loop.Logs
	logs.Metric("error", 2*x-l.slope*x)
	return l, logs, nil
}

// TrainEnd is a hook.
func (l line) TrainEnd(_ context.Context, turn *loop.Turn[line, float64]) error {
	fmt.Printf("the slope after %d steps is %.3f\n", turn.Elapsed.Steps, l.slope)
	return nil
}

// A state with methods makes loops of itself.
func ExampleOf() {
	ones := func(yield func(float64, error) bool) {
		for yield(1, nil) {
		}
	}
	testData := loop.Data[float64](func(yield func(float64, error) bool) { yield(10, nil) })
	training := train.Of[line]()
	training.Tests = []loop.Evaluation[line, float64]{train.TestOf[line](testData)}
	training.Hooks = []train.Hooks[line, float64]{{End: train.Method(line.TrainEnd)}}
	result, err := training.Run(context.Background(), line{}, loop.Data[float64](ones), loop.Until(loop.Steps(40)))
	if err != nil {
		fmt.Println(err)
		return
	}
	last, err := result.History.Last("error_test")
	fmt.Printf("the test's error is %.2f %v\n", last, err)
	// Output:
	// the slope after 40 steps is 1.970
	// the test's error is 0.30 <nil>
}

// A test with a hook, by itself: one row a batch, and one value of all.
func ExampleTest() {
	step := func(_ context.Context, slope, x float64) (float64, loop.Logs, error) {
		var logs loop.Logs
		logs.Metric("error", 2*x-slope*x)
		return slope, logs, nil
	}
	test := train.Test("test", loop.StepFunc[float64, float64](step), floats(5), train.Hooks[float64, float64]{
		End: func(_ context.Context, turn *loop.Turn[float64, float64]) error {
			fmt.Println("batches:", turn.Elapsed.Steps)
			return nil
		}})
	result, logs, err := test.Run(context.Background(), 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	mean, err := logs.Float("error_test")
	fmt.Println(result.History.Len(), mean, err)
	// Output:
	// batches: 5
	// 5 2 <nil>
}

// batch has room for four rows, and says how many of them are real.
type batch struct {
	rows [4]float64
	n    int
}

func (b batch) Samples() int { return b.n }

// Outputs come batch by batch; the rows of the padding do not.
func ExamplePredict() {
	data := func(yield func(batch, error) bool) {
		_ = yield(batch{[4]float64{1, 2, 3, 4}, 4}, nil) && yield(batch{[4]float64{5, 6}, 2}, nil)
	}
	predict := train.Predict[float64, batch, []float64]{
		Step: func(_ context.Context, slope float64, b batch) ([]float64, error) {
			y := make([]float64, b.n) // without the rows of the padding
			for i, x := range b.rows[:b.n] {
				y[i] = slope * x
			}
			return y, nil
		},
	}
	var all []float64
	for rows, err := range predict.All(context.Background(), 10, loop.Data[batch](data)) {
		fmt.Println(rows, err)
		all = append(all, rows...)
	}
	fmt.Println(all)
	// Output:
	// [10 20 30 40] <nil>
	// [50 60] <nil>
	// [10 20 30 40 50 60]
}
