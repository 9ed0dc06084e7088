package prometheus_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"regexp"

	"github.com/lazo-ml/lazo/callbacks/prometheus"
	"github.com/lazo-ml/lazo/loop"
)

func Example() {
	metrics := prometheus.New()
	server, err := metrics.Listen("127.0.0.1:0") // "" is port 9464
	if err != nil {
		log.Fatal(err)
	}
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
		metrics.Training("sums", loop.EachStep)); err != nil {
		log.Fatal(err)
	}
	page, err := http.Get("http://" + server.Addr().String() + "/metrics")
	if err != nil {
		log.Fatal(err)
	}
	text, err := io.ReadAll(page.Body)
	if err != nil {
		log.Fatal(err)
	}
	for _, line := range regexp.MustCompile(`(?m)^lazo_training_(steps|value|ends).*`).FindAllString(string(text), -1) {
		fmt.Println(line)
	}
	// Output:
	// lazo_training_ends_total{reason="data ended",run="sums"} 1
	// lazo_training_steps_total{run="sums"} 4
	// lazo_training_value{collection="losses",name="loss",run="sums"} 0.1
}
