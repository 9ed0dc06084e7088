package tensorboard_test

import (
	"context"
	"fmt"
	"image"
	"os"
	"path/filepath"

	"github.com/lazo-ml/lazo/callbacks/tensorboard"
	"github.com/lazo-ml/lazo/loop"
)

func ExampleWrite() {
	dir, err := os.MkdirTemp("", "runs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	step := func(_ context.Context, weights []float32, x int) ([]float32, loop.Logs, error) {
		weights = append(weights, float32(x))
		var logs loop.Logs
		logs.Loss("loss", 1/float64(len(weights)))
		return weights, logs, nil
	}
	// Make expensive values in a task of their own, as often as needed.
	look := func(_ context.Context, turn *loop.Turn[[]float32, int]) error {
		turn.Logs.Output("weights", tensorboard.NewHistogram(turn.State, 10))
		turn.Logs.Output("picture", image.NewGray(image.Rect(0, 0, 8, 8)))
		return nil
	}
	often, seldom := loop.Every(loop.Steps(10)), loop.Every(loop.Steps(50))
	_, err = loop.New(loop.On(loop.EachStep, loop.StepFunc(step)), loop.OnTurn(seldom, look)).Run(context.Background(), nil, numbers(100),
		tensorboard.Write(dir, often, tensorboard.Hyperparameters(map[string]any{"rate": 0.1, "layers": []int{64, 10}})))
	fmt.Println(err)
	files, _ := filepath.Glob(filepath.Join(dir, "train", "events.out.tfevents.*"))
	fmt.Println(len(files), "file")
	// Output:
	// <nil>
	// 1 file
}
