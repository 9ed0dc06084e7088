package mlflow_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/lazo-ml/lazo/callbacks/mlflow"
	"github.com/lazo-ml/lazo/loop"
)

func Example() {
	tracking := offline() // in place of `mlflow server`
	server := httptest.NewServer(tracking)
	defer server.Close()
	step := func(_ context.Context, sum, x int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Loss("loss", 1/float64(sum+x))
		return sum + x, logs, nil
	}
	batches := loop.Data[int](func(yield func(int, error) bool) {
		for x := 1; x <= 4 && yield(x, nil); x++ {
		}
	})
	if _, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(context.Background(), 0, batches,
		mlflow.Record(mlflow.Run{URL: server.URL, Name: "sums", Parameters: map[string]any{"to": 4}}, loop.EachStep)); err != nil {
		log.Fatal(err)
	}
	run := tracking.runs[0]
	fmt.Println(run.name, run.status, run.params)
	for _, v := range run.values["loss"] {
		fmt.Println(v.Step, v.Value)
	}
	// Output:
	// sums FINISHED map[to:4]
	// 1 1
	// 2 0.3333333333333333
	// 3 0.16666666666666666
	// 4 0.1
}
