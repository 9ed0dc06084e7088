package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// ranks measures data-parallel steps of mlp and of growth's chain over the launcher's processes, else over two devices
// of one process:
//
//	lazo run -np 2 go run ./cmd/bench -workload ranks
func ranks(ctx context.Context, b *bench) (err error) {
	job, err := dist.Join(ctx)
	if err != nil {
		return err
	}
	defer func() { err = job.Leave(err) }()
	options := []xla.Option{xla.InstallIfMissing(func(line string) { fmt.Fprintln(os.Stderr, line) }), xla.Across(job)}
	variant := fmt.Sprintf("%d processes", job.Size())
	if job.Size() == 1 {
		const devices = 2
		options, variant = append(options, xla.ClientOption("cpu_device_count", devices)), fmt.Sprintf("%d devices of one process", devices)
	}
	r, err := xla.Open(ctx, b.plugin, options...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	strategy, err := strategies.DataParallel(r, strategies.Parallel{})
	if err != nil {
		return err
	}
	if b.wants("chain") {
		c := size{variables: 10, batch: 256, steps: 2_000}
		took, err := b.chained(ctx, strategy, c)
		if err != nil {
			return err
		}
		if job.Rank() == 0 {
			l := line{Workload: "ranks", Variant: "chain, " + variant, Unit: "us/step", Batch: c.batch, Steps: c.steps, RSSMB: rssMB(), CPU: took.cpu}
			if err := b.emit(l, took.each(func(seconds float64) float64 { return 1e6 * seconds / float64(c.steps) })); err != nil {
				return err
			}
		}
	}
	if !b.wants("mlp") {
		return nil
	}
	w := trained["mlp"]
	set, err := random("mlp")
	if err != nil {
		return err
	}
	batch, steps := w.batches[0], w.steps
	if b.batch > 0 {
		batch = b.batch
	}
	if b.steps > 0 {
		steps = b.steps
	}
	state, err := managed.New(strategy, managed.WithOptimizer(w.optimizer()), managed.WithSeed(0))
	if err != nil {
		return err
	}
	step := managed.TrainStep(w.report("metric"))
	m := measured{state: state, step: step, variant: "metric", data: contiguous(set, batch)}
	took, err := m.repeat(ctx, b, w.warmup, steps)
	if err := errors.Join(err, step.Close(), state.Close()); err != nil || job.Rank() > 0 {
		return err
	}
	return b.emit(line{Workload: "ranks", Variant: variant, Unit: "ms/step", Batch: batch, Steps: steps, RSSMB: rssMB(), CPU: took.cpu},
		took.each(func(seconds float64) float64 { return 1e3 * seconds / float64(steps) }))
}
