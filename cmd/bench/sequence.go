package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// The first step includes initialization and compilation.
type sequence struct {
	variant string
	batch   int
	steps   int
	set     func(batches, batch int) (*data.Set, error)
	report  managed.Build
}

const firstVariant = " first step"

func lstmSizes() (list []sequence) {
	for _, places := range []int{32, 128, 512} {
		list = append(list, lstmOf(places, 2048/places))
	}
	return list
}

func gptSizes() []sequence {
	return []sequence{gptOf(gptSize, 4)}
}

const lstmIn, lstmUnits, lstmClasses = 32, 128, 10

func lstmOf(places, steps int) sequence {
	return sequence{variant: fmt.Sprint(places), batch: 32, steps: steps,
		set: func(batches, batch int) (*data.Set, error) {
			r := rand.New(rand.NewPCG(0, 0))
			n := batches * batch
			x, y := make([]float32, n*places*lstmIn), make([]int32, n)
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			for i := range y {
				y[i] = int32(r.IntN(lstmClasses))
			}
			return data.New(data.X(x, n, places, lstmIn), data.Y(y, n))
		},
		report: func(b *managed.Builder) {
			x := nn.LSTM{Units: lstmUnits, Last: true}.Apply(b.Scope().In("lstm"), b.Field("x"))
			b.Loss("loss", losses.CrossEntropy(b.Field("y"), nn.Dense{Units: lstmClasses}.Apply(b.Scope().In("logits"), x)))
		}}
}

type gpt struct {
	layers, width, heads, vocabulary, places int
	again                                    bool // the gradient computes each layer again
}

var gptSize = gpt{layers: 6, width: 256, heads: 8, vocabulary: 2048, places: 128}

func (m gpt) recomputed() gpt {
	m.again = true
	return m
}

func gptOf(m gpt, steps int) sequence {
	return sequence{variant: fmt.Sprint(m.layers), batch: 16, steps: steps,
		set: func(batches, batch int) (*data.Set, error) {
			r := rand.New(rand.NewPCG(0, 0))
			n := batches * batch
			x, y := make([]int32, n*m.places), make([]int32, n*m.places)
			for i := range x {
				x[i], y[i] = int32(r.IntN(m.vocabulary)), int32(r.IntN(m.vocabulary))
			}
			return data.New(data.X(x, n, m.places), data.Y(y, n, m.places))
		},
		report: func(b *managed.Builder) {
			logits, _ := m.apply(b.Scope(), b.Field("x"), nil)
			b.Loss("loss", losses.CrossEntropy(b.Field("y"), logits))
		}}
}

// apply returns the logits of [batch, places] tokens. Caches, one per layer, have the tokens before.
func (m gpt) apply(s *model.Scope, ids *graph.Node, caches []nn.Cache) (*graph.Node, []nn.Cache) {
	tokens, positions := nn.Embedding{Vocabulary: m.vocabulary, Width: m.width}, nn.Positions{Length: m.places}
	if caches != nil {
		positions.Start = caches[0].Position
	}
	x := positions.Apply(s.In("positions"), tokens.Apply(s.In("tokens"), ids))
	next := make([]nn.Cache, len(caches))
	for i := range m.layers {
		at := s.In("block_%d", i)
		if m.again {
			x = x.Checkpoint()
		}
		h := nn.LayerNorm{}.Apply(at.In("norm_0"), x)
		if attention := m.attention(); caches == nil {
			h = attention.Apply(at.In("attention"), h)
		} else {
			h, next[i] = attention.Decode(at.In("attention"), h, caches[i])
		}
		x = graph.Add(x, h)
		h = nn.LayerNorm{}.Apply(at.In("norm_1"), x)
		h = nn.Activation("gelu_approx").Apply(at, nn.Dense{Units: 4 * m.width}.Apply(at.In("dense_0"), h))
		x = graph.Add(x, nn.Dense{Units: m.width}.Apply(at.In("dense_1"), h))
	}
	if m.again {
		x = x.StopCheckpoint()
	}
	return tokens.Logits(s.Shared("tokens"), nn.LayerNorm{}.Apply(s.In("norm"), x)), next
}

func (m gpt) attention() nn.Attention { return nn.Attention{Heads: m.heads, Causal: true} }

func trainSequences(name string, sizes []sequence) func(ctx context.Context, b *bench) error {
	return func(ctx context.Context, b *bench) error {
		for _, q := range sizes {
			if b.steps > 0 {
				q.steps = b.steps
			}
			if b.batch > 0 {
				q.batch = b.batch
			}
			l := line{Workload: name, Batch: q.batch}
			if b.wants(q.variant) {
				took, err := q.eachStep(ctx, b)
				if err != nil {
					return err
				}
				l.Variant, l.Unit, l.Steps, l.CPU, l.RSSMB = q.variant, "ms/step", q.steps, took.cpu, rssMB()
				if err := b.emit(l, took.each(func(s float64) float64 { return 1e3 * s / float64(q.steps) })); err != nil {
					return err
				}
			}
			if first := q.variant + firstVariant; b.wants(first) {
				took, err := q.firstSteps(ctx, b)
				if err != nil {
					return err
				}
				l.Variant, l.Unit, l.Steps, l.CPU, l.RSSMB = first, "s", 1, took.cpu, rssMB()
				if err := b.emit(l, took.seconds); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func (q sequence) eachStep(ctx context.Context, b *bench) (took repeats, err error) {
	r, err := b.open(ctx)
	if err != nil {
		return took, err
	}
	set, err := q.set(4, q.batch)
	if err != nil {
		return took, err
	}
	state, step, err := q.training(r)
	if err != nil {
		return took, err
	}
	defer func() { err = errors.Join(err, step.Close(), state.Close()) }()
	run := func(n int) error {
		_, err := loop.New(loop.On(loop.EachStep, step)).Run(ctx, state, set.Batches(q.batch), loop.Until(loop.Steps(n)))
		return errors.Join(err, state.Wait())
	}
	if err := run(2); err != nil {
		return took, err
	}
	return b.measure(ctx, b.repeats, func() error { return run(q.steps) })
}

func (q sequence) firstSteps(ctx context.Context, b *bench) (took repeats, err error) {
	r, err := xla.Open(ctx, b.plugin, xla.KeepPrograms(0))
	if err != nil {
		return took, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	set, err := q.set(1, q.batch)
	if err != nil {
		return took, err
	}
	first := func() (err error) {
		state, step, err := q.training(r)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, step.Close(), state.Close()) }()
		for batch, err := range set.Batches(q.batch).All() {
			if err != nil {
				return err
			}
			if _, logs, err := step.Step(ctx, state, batch); err != nil {
				return err
			} else if _, err := logs.Float("loss"); err != nil {
				return err
			}
		}
		return nil
	}
	if err := first(); err != nil {
		return took, err
	}
	return b.measure(ctx, b.repeats, first)
}

func (q sequence) training(r *xla.Runtime) (*managed.State, *managed.Stepper, error) {
	state, err := managed.New(strategies.Jit(r), managed.WithOptimizer(adam()))
	return state, managed.TrainStep(q.report), err
}
