package board_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/lazo-ml/lazo/callbacks/board"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

// A page for a run. The address, with its token, is for the user's browser.
func Example() {
	page, err := board.Serve("127.0.0.1:0", board.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer page.Close()
	fmt.Println(strings.HasPrefix(page.URL(), "http://127.0.0.1:"))

	step := func(_ context.Context, steps int, loss float64) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Loss("loss", loss)
		return steps + 1, logs, nil
	}
	training := loop.New(loop.On(loop.EachStep, loop.StepFunc(step)))
	result, err := training.Run(context.Background(), 0, loop.Data[float64](data.Items([]float64{5, 3, 4})), page.Training("first", loop.Every(loop.Steps(1))))
	fmt.Println(result.State, err)
	// Output:
	// true
	// 3 <nil>
}
