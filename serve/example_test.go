package serve_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/serve"
)

// A function served by the Open Inference Protocol. examples/serve has a trained model and a complete server.
func ExampleNewHandler() {
	halves := serve.Func(func(_ context.Context, batch data.Batch) (map[string]data.Array, error) {
		x, err := batch.Field("x")
		if err != nil {
			return nil, err
		}
		half := make([]float32, x.Len())
		for i, v := range x.Flat.([]float32) {
			half[i] = v / 2
		}
		return map[string]data.Array{"half": {Flat: half, Dims: []int{x.Len()}}}, nil
	})
	batcher, err := serve.New(halves, data.Batch{Fields: []data.Field{data.X([]float32{0}, 1)}}, serve.Batching{MaxBatch: 8})
	if err != nil {
		log.Fatal(err)
	}
	if err := batcher.Warm(context.Background()); err != nil {
		log.Fatal(err)
	}
	handler, err := serve.NewHandler(map[string]*serve.Batcher{"halves": batcher}, serve.Options{})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(handler)
	answer, err := http.Post(server.URL+"/v2/models/halves/infer", "application/json",
		strings.NewReader(`{"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [3, 5]}]}`))
	if err != nil {
		log.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
	server.Close()
	if err := batcher.Close(); err != nil {
		log.Fatal(err)
	}
	// Output: {"model_name":"halves","model_version":"1","outputs":[{"name":"half","datatype":"FP32","shape":[2],"data":[1.5,2.5]}]}
}

// A batcher answers requests of concurrent callers together. A model of package flaxlike is a Predictor too.
func ExampleBatcher_Answer() {
	sums := serve.Func(func(_ context.Context, batch data.Batch) (map[string]data.Array, error) {
		x, err := batch.Field("x")
		if err != nil {
			return nil, err
		}
		sum := make([]float32, x.Len())
		for i, v := range x.Flat.([]float32) {
			sum[i/2] += v
		}
		return map[string]data.Array{"sum": {Flat: sum, Dims: []int{x.Len()}}}, nil
	})
	batcher, err := serve.New(sums, data.Batch{Fields: []data.Field{data.X([]float32{0, 0}, 1, 2)}}, serve.Batching{MaxBatch: 8})
	if err != nil {
		log.Fatal(err)
	}
	answer, err := batcher.Answer(context.Background(), data.Batch{Fields: []data.Field{data.X([]float32{1, 2, 3, 4}, 2, 2)}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer["sum"].Flat)
	_, err = batcher.Answer(context.Background(), data.Batch{Fields: []data.Field{data.X([]float32{1, 2, 3}, 1, 3)}})
	fmt.Println(err)
	if err := batcher.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// [3 7]
	// serve: predict: wrong input: "x" is float32 [1 3]: expected float32 [batch, 2]
}
