package main

import (
	"context"
	"errors"
	"os"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
)

func train(name string) func(ctx context.Context, b *bench) error {
	return func(ctx context.Context, b *bench) error {
		w := trained[name]
		set, err := random(name)
		if err != nil {
			return err
		}
		r, err := b.open(ctx)
		if err != nil {
			return err
		}
		steps, batches := w.steps, w.batches
		if b.steps > 0 {
			steps = b.steps
		}
		if b.batch > 0 {
			batches = []int{b.batch}
		}
		for _, batch := range batches {
			if name == "mlp" {
				steps = min(steps, set.Len()/batch)
			}
			for _, variant := range w.variants {
				if !b.wants(variant) {
					continue
				}
				state, err := w.newState(r, 0)
				if err != nil {
					return err
				}
				step := managed.TrainStep(w.report(variant))
				m := measured{state: state, step: step, variant: variant, data: contiguous(set, batch)}
				if variant == onDevice {
					m.data = data.OnDevice(set).Batches(batch)
				}
				took, err := m.repeat(ctx, b, w.warmup, steps)
				err = errors.Join(err, step.Close(), state.Close())
				if err != nil {
					return err
				}
				l := line{Workload: name, Variant: variant, Unit: "steps/s", Batch: batch, Steps: steps, RSSMB: rssMB(), CPU: took.cpu}
				figure := func(s float64) float64 { return float64(steps) / s }
				if name == "tiny" {
					l.Unit = "us/step"
					figure = func(s float64) float64 { return 1e6 * s / float64(steps) }
				}
				if err := b.emit(l, took.each(figure)); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

type measured struct {
	state   *managed.State
	step    *managed.Stepper
	variant string
	data    loop.Source[data.Batch]
}

func (m measured) repeat(ctx context.Context, b *bench, warmup, steps int) (took repeats, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return took, err
	}
	defer null.Close()
	if err := m.run(ctx, warmup, null); err != nil {
		return took, err
	}
	return b.measure(ctx, b.repeats, func() error { return m.run(ctx, steps, null) })
}

// run waits for the last step. Variants log and bar read each loss and accuracy on the host.
func (m measured) run(ctx context.Context, steps int, null *os.File) error {
	options := []loop.Option{loop.Until(loop.Steps(steps))}
	if summed(m.variant) {
		options = append(options, loop.Keep(loop.Schedule{}))
	}
	if m.variant == "bar" {
		options = append(options, callbacks.ProgressBar(null))
	}
	task := loop.On(loop.EachStep, m.step)
	if m.variant == oneByOne {
		task = loop.On(loop.EachStep, loop.StepFunc(m.step.Step))
	}
	result, err := loop.New(task).Run(ctx, m.state, m.data, options...)
	if err != nil {
		return err
	}
	if summed(m.variant) {
		_, err := m.state.Value("/metrics/loss")
		return err
	}
	for _, name := range []string{"loss", "accuracy"} {
		if _, _, err := result.History.Series(name); err != nil {
			return err
		}
	}
	return nil
}

func contiguous(set *data.Set, batch int) loop.Source[data.Batch] {
	return set.Batches(batch)
}
