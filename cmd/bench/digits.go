package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/xla"
)

// With three seeds: test accuracy, seconds of the first training with compilation, and of the fastest other.
func digits(ctx context.Context, b *bench) error {
	const epochs = 10
	w := trained["digits"]
	trainSet, testSet, err := data.Digits()
	if err != nil {
		return err
	}
	r, err := b.open(ctx)
	if err != nil {
		return err
	}
	batch := w.batches[0]
	if b.batch > 0 {
		batch = b.batch
	}
	seed := func(n int64) (accuracy, seconds float64, err error) {
		start := time.Now()
		accuracy, err = w.accuracy(ctx, r, n, trainSet.Batches(batch, data.Shuffle(uint64(n))), epochs, testSet)
		return accuracy, time.Since(start).Seconds(), err
	}
	if b.wants("metric") {
		var accuracies, seconds []float64
		sum := 0.0
		for n := range int64(3) {
			accuracy, took, err := seed(n)
			if err != nil {
				return err
			}
			seconds = append(seconds, took)
			accuracies = append(accuracies, accuracy)
			sum += accuracy
		}
		l := line{Workload: "digits", Variant: "metric", Unit: "test accuracy", Mean: sum / 3, Batch: batch, Epochs: epochs,
			FirstS: seconds[0], WarmS: slices.Min(seconds[1:]), RSSMB: rssMB()}
		if err := b.emit(l, accuracies); err != nil {
			return err
		}
	}
	if b.wants("later seed") {
		if _, _, err := seed(0); err != nil {
			return err
		}
		var seconds, cpu []float64
		for n := range int64(b.repeats) {
			if err := b.turn(ctx); err != nil {
				return err
			}
			before := cpuSeconds()
			_, took, err := seed(n + 1)
			if err != nil {
				return err
			}
			seconds, cpu = append(seconds, took), append(cpu, cpuSeconds()-before)
		}
		return b.emit(line{Workload: "digits", Variant: "later seed", Unit: "s", CPU: cpu, Batch: batch, Epochs: epochs, RSSMB: rssMB()}, seconds)
	}
	return nil
}

func (w workload) accuracy(ctx context.Context, r *xla.Runtime, seed int64, batches data.Batches, epochs int, test *data.Set) (accuracy float64, err error) {
	state, err := w.newState(r, seed)
	if err != nil {
		return 0, err
	}
	step, testStep := managed.TrainStep(w.report("metric")), managed.TestStep(w.report("log"))
	defer func() { err = errors.Join(err, step.Close(), testStep.Close(), state.Close()) }()
	if _, err := loop.New(loop.On(loop.EachStep, step)).Run(ctx, state, batches, loop.Until(loop.Epochs(epochs)), loop.Keep(loop.Schedule{})); err != nil {
		return 0, err
	}
	result, err := loop.New(loop.On(loop.EachStep, testStep)).Run(ctx, state, test.Batches(test.Len()))
	if err != nil {
		return 0, err
	}
	return result.History.Mean("accuracy")
}
