package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
)

var asking = []int{1, 8, 64}

func perceptron(scope *model.Scope, x *graph.Node) *graph.Node {
	for i, n := range []int{512, 512, 10} {
		if i > 0 {
			x = activation.Relu(x)
		}
		x = layers.Dense(scope.In("dense_%d", i), x, true, n)
	}
	return x
}

// Variants are numbers of goroutines, each of which waits for its answer.
func predict(ctx context.Context, b *bench) (err error) {
	r, err := b.open(ctx)
	if err != nil {
		return err
	}
	model, err := flaxlike.New(ctx, nn.Func(perceptron), flaxlike.WithStrategy(strategies.Jit(r)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	set, err := random("mlp")
	if err != nil {
		return err
	}
	var examples []data.Batch
	for batch, err := range set.Batches(1).All() {
		if err != nil {
			return err
		}
		if examples = append(examples, batch); len(examples) == 256 {
			break
		}
	}
	requests := 20_000
	if b.steps > 0 {
		requests = b.steps
	}
	for _, goroutines := range asking {
		variant := fmt.Sprint(goroutines)
		if !b.wants(variant) {
			continue
		}
		var took []time.Duration
		ask := func(n int) error {
			var err error
			took, err = asked(goroutines, n, func(_, i int) error {
				_, err := model.Answer(ctx, examples[i%len(examples)])
				return err
			})
			return err
		}
		if err := ask(max(requests/10, goroutines)); err != nil {
			return err
		}
		measured, err := b.measure(ctx, b.repeats, func() error { return ask(requests) })
		if err != nil {
			return err
		}
		slices.Sort(took)
		at := func(share float64) float64 { return float64(took[int(share*float64(len(took)-1))]) / 1e3 }
		l := line{Workload: "predict", Variant: variant, Unit: "requests/s", Batch: 1, Steps: requests, CPU: measured.cpu, P50: at(0.5), P99: at(0.99)}
		if err := b.emit(l, measured.each(func(s float64) float64 { return float64(requests) / s })); err != nil {
			return err
		}
	}
	return nil
}

// asked returns the times of n calls of ask by goroutines, numbered from 0.
func asked(goroutines, n int, ask func(goroutine, i int) error) ([]time.Duration, error) {
	took := make([]time.Duration, n)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for k := range goroutines {
		wg.Go(func() {
			for failed.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				start := time.Now()
				if err := ask(k, i); err != nil {
					failed.Store(&err)
				}
				took[i] = time.Since(start)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	return took, nil
}
