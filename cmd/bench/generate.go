package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
)

type generator struct {
	gpt
	prompt, tokens int // lengths
}

var bigGenerator = generator{gpt{layers: 6, width: 256, heads: 8, vocabulary: 2048, places: 640}, 16, 512}

// One sequence, with each token read on the host and passed in again: tokens per second, time to the first, and the
// slowdown to the last.
func generates(m generator) func(ctx context.Context, b *bench) error {
	return func(ctx context.Context, b *bench) (err error) {
		if b.steps > 0 {
			m.tokens = min(b.steps, m.places-m.prompt)
		}
		r, err := b.open(ctx)
		if err != nil {
			return err
		}
		state, err := managed.New(strategies.Jit(r), managed.WithOptimizer(adam()))
		if err != nil {
			return err
		}
		step := managed.TestStep(m.next)
		defer func() { err = errors.Join(err, step.Close(), state.Close()) }()
		if _, err := m.generate(ctx, state, step); err != nil {
			return err
		}
		for _, figure := range []struct {
			variant, unit string
			of            func(took []time.Duration) float64
		}{
			{"tokens", "tokens/s", func(took []time.Duration) float64 { return float64(len(took)) / sum(took).Seconds() }},
			{"first token", "ms", func(took []time.Duration) float64 { return 1e3 * took[0].Seconds() }},
			{"token 500 / token 10", "ratio", func(took []time.Duration) float64 {
				n := min(21, len(took)-1)
				return float64(middle(took[len(took)-n:])) / float64(middle(took[1:1+n]))
			}},
		} {
			if !b.wants(figure.variant) {
				continue
			}
			var values []float64
			times, err := b.measure(ctx, b.repeats, func() error {
				took, err := m.generate(ctx, state, step)
				if err == nil {
					values = append(values, figure.of(took))
				}
				return err
			})
			if err != nil {
				return err
			}
			l := line{Workload: "generate", Variant: figure.variant, Unit: figure.unit, Batch: 1, Steps: m.tokens, CPU: times.cpu, RSSMB: rssMB()}
			if err := b.emit(l, values); err != nil {
				return err
			}
		}
		return nil
	}
}

// A prompt clears the caches.
func (m generator) next(b *managed.Builder) {
	ids, s := b.Field("x"), b.Scope()
	g := b.Graph()
	shape := m.attention().NewCache(s, graph.Zeros(g, shapes.Make(dtypes.Float32, 1, 1, m.width)), m.places).Key.Shape()
	at := s.At("cache").VariableWithValue("position", int32(0)).SetTrainable(false)
	position := at.NodeValue(g)
	if ids.Shape().Dimensions[1] > 1 {
		position = graph.ZerosLike(position)
	}
	caches := make([]nn.Cache, m.layers)
	variables := make([][2]*model.Variable, m.layers)
	for i := range caches {
		for k, name := range []string{"key", "value"} {
			variables[i][k] = s.At("cache").WithInitializer(nn.Initial("zeros")).VariableWithShape(fmt.Sprintf("%s_%d", name, i), shape).SetTrainable(false)
		}
		caches[i] = nn.Cache{Key: variables[i][0].NodeValue(g), Value: variables[i][1].NodeValue(g), Position: position}
	}
	logits, caches := m.apply(s, ids, caches)
	for i, c := range caches {
		variables[i][0].SetNodeValue(c.Key)
		variables[i][1].SetNodeValue(c.Value)
		at.SetNodeValue(c.Position)
	}
	last := graph.Slice(logits, graph.AxisRange(), graph.AxisElem(-1))
	b.Metric("token", graph.ReduceAllSum(graph.ArgMax(last, -1, dtypes.Int32)))
}

func (m generator) generate(ctx context.Context, state *managed.State, step *managed.Stepper) (took []time.Duration, err error) {
	ids := make([]int32, m.prompt)
	for i := range ids {
		ids[i] = int32(i)
	}
	start := time.Now()
	for range m.tokens {
		batch := data.Batch{Fields: []data.Field{{Name: "x", Array: data.Array{Flat: ids, Dims: []int{1, len(ids)}}}}}
		_, logs, err := step.Step(ctx, state, batch)
		if err != nil {
			return nil, err
		}
		token, err := logs.Float("token")
		if err != nil {
			return nil, err
		}
		ids = []int32{int32(token)}
		now := time.Now()
		took, start = append(took, now.Sub(start)), now
	}
	return took, nil
}

func sum(list []time.Duration) (all time.Duration) {
	for _, d := range list {
		all += d
	}
	return all
}

func middle(list []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(list))[len(list)/2]
}
