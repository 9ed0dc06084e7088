package callbacks_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

// A run that stops early, returns its best state, and writes its logs to a file.
func Example() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	log := filepath.Join(dir, "log.csv")

	step := func(_ context.Context, steps int, loss float64) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Loss("loss", loss)
		return steps + 1, logs, nil
	}
	training := loop.New(loop.On(loop.EachStep, loop.StepFunc(step)))
	result, err := training.Run(context.Background(), 0, loop.Data[float64](data.Items([]float64{5, 3, 4, 3.5, 6, 7})),
		callbacks.StopEarly("loss", callbacks.Evaluations(2)),
		callbacks.KeepBest("loss"),
		callbacks.CSV(log, loop.EachStep))
	fmt.Println(result.Reason, "after", loop.Steps(result.Elapsed.Steps), "with the state of step", result.State, err)

	var history loop.History
	file, err := os.Open(log)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	if err := history.ReadCSV(file); err != nil {
		fmt.Println(err)
	}
	fmt.Println(history.Len(), "rows")
	// Output:
	// stopped after 4 steps with the state of step 2 <nil>
	// 4 rows
}
