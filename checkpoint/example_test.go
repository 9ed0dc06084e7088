package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// Progress is the program's own data that it needs after a restart.
type Progress struct {
	Epoch int
	Order []int64 // of the examples
}

func Example() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	folder, err := checkpoint.Open(dir, checkpoint.Options{
		Keep: []checkpoint.Retention{{Last: 2, Best: 1, Metric: "loss"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer folder.Close()

	weights := []float32{0, 0, 0}
	start, err := folder.Newest(ctx)
	switch {
	case errors.Is(err, checkpoint.ErrNone):
		fmt.Println("a new run")
	case err != nil:
		log.Fatal(err) // there are checkpoints, but all are damaged: do not start again
	default:
		fmt.Println("go on after step", start.Step)
	}

	for i, loss := range []float64{0.9, 0.2, 0.5, 0.4, 0.3} {
		step := checkpoint.Step(100 * (i + 1))
		weights[0] += 0.5 // training
		err := folder.Save(ctx, step, checkpoint.Content{
			Tensors: []checkpoint.Tensor{
				{Name: "dense/weights", DType: safetensors.F32, Dims: []int{3}, Data: safetensors.Bytes(weights)},
			},
			Metrics:  map[string]float64{"loss": loss},
			Sections: map[string]any{"progress": Progress{Epoch: i + 1, Order: []int64{1 << 60, 3}}},
		})
		if err != nil {
			log.Fatal(err)
		}
	}

	list, err := folder.List(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range list {
		fmt.Printf("step %d: loss %g, %d bytes\n", c.Step, c.Metrics["loss"], c.Bytes)
	}
	last, err := folder.Newest(ctx)
	if err != nil {
		log.Fatal(err)
	}
	var progress Progress
	if err := last.Section("progress", &progress); err != nil {
		log.Fatal(err)
	}
	tensor, _ := last.Tensor("dense/weights")
	values, err := safetensors.Values[float32](tensor.Data)
	fmt.Println(progress, values, err)
	// Output:
	// a new run
	// step 200: loss 0.2, 12 bytes
	// step 400: loss 0.4, 12 bytes
	// step 500: loss 0.3, 12 bytes
	// {5 [1152921504606846976 3]} [2.5 0 0] <nil>
}

func ExampleAsync() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	folder, err := checkpoint.Open(dir, checkpoint.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer folder.Close()

	background := folder.Async()
	weights := []byte{1, 2, 3}
	err = background.Save(context.Background(), 10, checkpoint.Content{
		Tensors: []checkpoint.Tensor{{Name: "w", DType: safetensors.U8, Dims: []int{3}, Data: weights}},
	})
	weights[0] = 100 // training continues
	fmt.Println(errors.Join(err, background.Close()))

	c, err := folder.Newest(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	w, _ := c.Tensor("w")
	fmt.Println(c.Step, w.Data)
	// Output:
	// <nil>
	// 10 [1 2 3]
}

func ExampleParams() {
	folder, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	f, err := checkpoint.Open(folder, checkpoint.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	err = f.Save(context.Background(), 1, checkpoint.Content{
		Sections: map[string]any{"config": checkpoint.Params{"seed": uint64(1<<64 - 1), "rate": float32(0.1), "warm": true}},
	})
	if err != nil {
		log.Fatal(err)
	}
	c, err := f.Load(context.Background(), 1)
	if err != nil {
		log.Fatal(err)
	}
	var p checkpoint.Params
	err = c.Section("config", &p)
	fmt.Printf("%T %v, %T %v, %v %v\n", p["seed"], p["seed"], p["rate"], p["rate"], p["warm"], err)
	// Output: uint64 18446744073709551615, float32 0.1, true <nil>
}
