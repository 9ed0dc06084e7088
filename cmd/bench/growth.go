package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

var growths = []struct {
	of     string
	values []int
}{
	{"variables", []int{10, 30, 100, 300, 1_000}},
	{"batch", []int{8, 32, 128, 512, 2_048, 8_192}},
	{"devices", []int{1, 2, 4, 8}},
	{"steps", []int{1_000, 10_000, 100_000, 1_000_000}},
	{"places", []int{32, 128, 512}},
	{"layers", []int{1, 2, 4, 8}},
}

// dense layers with two variables each, on 16 inputs
type size struct{ variables, batch, devices, steps int }

// Places are workload lstm's, layers a small gpt's. Variables, places and layers have a first step too.
func growth(ctx context.Context, b *bench) error {
	var points []point
	for _, g := range growths {
		for _, value := range g.values {
			name := fmt.Sprintf("%s %d", g.of, value)
			s, q := size{variables: 10, batch: 32, devices: 1, steps: 2_000}, sequence{}
			switch g.of {
			case "places":
				q = lstmOf(value, 2048/value)
			case "layers":
				q = gptOf(gpt{layers: value, width: 128, heads: 4, vocabulary: 512, places: 64}, 10)
			case "variables":
				s.variables = value
				q = sequence{batch: s.batch, set: func(batches, batch int) (*data.Set, error) { return chainSet(batches * batch) }, report: chain(value / 2)}
			case "batch":
				s.batch = value
			case "devices":
				s.devices, s.batch = value, 256
			case "steps":
				s.steps = value
			}
			if b.wants(g.of) || b.wants(name) {
				var median float64
				var err error
				if q.steps > 0 {
					median, err = b.growSequence(ctx, name, q)
				} else {
					median, err = b.grow(ctx, name, s)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				points = append(points, point{g.of, value, median})
			}
			if first := name + firstVariant; q.report != nil && (b.wants(g.of) || b.wants(first)) {
				took, err := q.firstSteps(ctx, b)
				if err == nil {
					err = b.emit(line{Workload: "growth", Variant: first, Unit: "s", Batch: q.batch, Steps: 1, CPU: took.cpu, RSSMB: rssMB()}, took.seconds)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", first, err)
				}
			}
		}
	}
	if b.plot == "" {
		return nil
	}
	return os.WriteFile(b.plot, []byte(draw(points)), 0o644)
}

func (b *bench) grow(ctx context.Context, name string, s size) (median float64, err error) {
	r, err := xla.Open(ctx, b.plugin, xla.ClientOption("cpu_device_count", s.devices))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	strategy := strategies.Jit(r)
	if s.devices > 1 {
		if strategy, err = strategies.DataParallel(r, strategies.Parallel{}); err != nil {
			return 0, err
		}
	}
	times, err := b.chained(ctx, strategy, s)
	if err != nil {
		return 0, err
	}
	l := line{Workload: "growth", Variant: name, Unit: "us/step", Batch: s.batch, Steps: s.steps, CPU: times.cpu, RSSMB: rssMB()}
	values := times.each(func(seconds float64) float64 { return 1e6 * seconds / float64(s.steps) })
	return medianOf(values), b.emit(l, values)
}

// chained measures steps of a chain.
func (b *bench) chained(ctx context.Context, on strategies.Strategy, s size) (times repeats, err error) {
	set, err := chainSet(16_384)
	if err != nil {
		return times, err
	}
	state, err := managed.New(on, managed.WithOptimizer(adam()))
	if err != nil {
		return times, err
	}
	step := managed.TrainStep(chain(s.variables / 2))
	defer func() { err = errors.Join(err, step.Close(), state.Close()) }()
	train := func(n int) error {
		_, err := loop.New(loop.On(loop.EachStep, step)).Run(ctx, state, set.Batches(s.batch), loop.Until(loop.Steps(n)), loop.Thin(1_000))
		return err
	}
	if err := train(300); err != nil {
		return times, err
	}
	return b.measure(ctx, b.repeats, func() error { return train(s.steps) })
}

func chainSet(n int) (*data.Set, error) {
	x := make([]float32, 16*n)
	for i := range x {
		x[i] = float32(i%17) / 17
	}
	return data.New(data.X(x, n, 16), data.Y(make([]float32, n), n, 1))
}

func chain(n int) managed.Build {
	return func(b *managed.Builder) {
		h := b.Field("x")
		for i := range n - 1 {
			h = activation.Relu(layers.Dense(b.Scope().In("dense_%d", i), h, true, 16))
		}
		b.Loss("loss", losses.SquaredError(b.Field("y"), layers.Dense(b.Scope().In("out"), h, true, 1)))
	}
}

func (b *bench) growSequence(ctx context.Context, name string, q sequence) (median float64, err error) {
	took, err := q.eachStep(ctx, b)
	if err != nil {
		return 0, err
	}
	l := line{Workload: "growth", Variant: name, Unit: "us/step", Batch: q.batch, Steps: q.steps, CPU: took.cpu, RSSMB: rssMB()}
	values := took.each(func(seconds float64) float64 { return 1e6 * seconds / float64(q.steps) })
	return medianOf(values), b.emit(l, values)
}
