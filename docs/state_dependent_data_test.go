package docs_test

import (
	"cmp"
	"context"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
)

// classify is a step that trains a linear classifier of digits; surest outputs the probability of the likeliest class.
func classify(b *managed.Builder) {
	logits := nn.Dense{Units: 10}.Apply(b.Scope(), graph.Reshape(b.Field("x"), -1, 64))
	b.Loss("loss", losses.CrossEntropy(b.Field("y"), logits))
}

func surest(b *managed.Builder) {
	logits := nn.Dense{Units: 10}.Apply(b.Scope(), graph.Reshape(b.Field("x"), -1, 64))
	b.Output("surest", graph.ReduceMax(graph.Softmax(logits), -1))
}

// A source asks for the labels of the examples that the model is least sure of. The run ends with the same choice and
// the same parameters whether it is resumed or not, and with steps in blocks or one at a time.
func TestStateDependentData_activeLearning(t *testing.T) {
	ctx := t.Context()
	pool, _ := digits()
	trained := func(dir string, steps loop.Steps, options ...loop.Option) (chosen []int, weights any) {
		state := must.M1(managed.New(jit(), managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done()))))
		defer state.Close()
		step, look := managed.TrainStep(classify), managed.TestStep(surest, managed.OutputsAlone())
		defer step.Close()
		defer look.Close()

		labelled := []int{}
		source := loop.From(func(position int64) iter.Seq2[data.Batch, error] {
			return func(yield func(data.Batch, error) bool) {
				for ; ; position++ {
					if position%50 == 0 { // add the 16 examples that the model is least sure of
						_, logs := must.M2(look.Step(ctx, state, must.M1(data.Peek(pool.Batches(pool.Len()).All()))))
						labelled = append(labelled, lowest(must.M1(managed.Array(logs, "surest")), 16, labelled)...)
					}
					random, rows := rand.New(rand.NewPCG(1, uint64(position))), make([]int, 8)
					for i := range rows {
						rows[i] = labelled[random.IntN(len(labelled))]
					}
					batch, err := data.Peek(must.M1(pool.Gather(rows)).Batches(8).All())
					if !yield(batch, err) {
						return
					}
				}
			}
		})
		saved := checkpoint.Options{Also: map[string]any{"labelled": &labelled}}
		training := loop.New(loop.On(loop.EachStep, step))
		must.M1(training.Run(ctx, state, source, loop.Until(steps), loop.Options(options...),
			checkpoint.Resume(dir, checkpoint.Every(loop.Steps(70)), saved)))
		return labelled, must.M1(state.Value("/kernel")).Value()
	}
	whole, weights := trained(filepath.Join(t.TempDir(), "run"), 170)
	require.Len(t, whole, 64)
	dir := filepath.Join(t.TempDir(), "run")
	trained(dir, 90)
	resumed, same := trained(dir, 170)
	require.Equal(t, whole, resumed)
	require.Equal(t, weights, same)
	single, same := trained(filepath.Join(t.TempDir(), "run"), 170, loop.SingleSteps())
	require.Equal(t, whole, single)
	require.Equal(t, weights, same)
}

// lowest are the places of the n lowest numbers, but for those that are left out.
func lowest(of data.Array, n int, without []int) (places []int) {
	numbers := of.Flat.([]float32)
	for i := range numbers {
		if !slices.Contains(without, i) {
			places = append(places, i)
		}
	}
	slices.SortFunc(places, func(a, b int) int { return cmp.Or(cmp.Compare(numbers[a], numbers[b]), a-b) })
	return places[:n]
}

// A callback that reads the loss makes the data harder. A step later the source sees it, with blocks and without.
func TestStateDependentData_curriculum(t *testing.T) {
	set := line(64)
	trained := func(options ...loop.Option) (levels []int) {
		state := must.M1(managed.New(jit(), managed.WithOptimizer(optim.GoMLX(optimizer.Adam().LearningRate(0.1).Done()))))
		defer state.Close()
		step := managed.TrainStep(func(b *managed.Builder) {
			b.Loss("loss", losses.SquaredError(b.Field("y"), nn.Dense{Units: 1}.Apply(b.Scope(), b.Field("x"))))
		})
		defer step.Close()

		level := 1
		harder := loop.Watch(loop.Every(loop.Steps(20)), func(_ context.Context, report loop.Report) error {
			loss, err := report.Logs.Float("loss")
			if loss < 0.1 {
				level = min(level+1, 4)
			}
			return err
		})
		saved := checkpoint.Options{Also: map[string]any{"level": &level}}
		source := loop.From(func(position int64) iter.Seq2[data.Batch, error] {
			return func(yield func(data.Batch, error) bool) {
				for ; ; position++ {
					levels = append(levels, level)
					part := must.M1(set.Slice(0, 16*level))
					if !yield(data.Peek(part.Batches(16, data.Shuffle(uint64(position))).All())) {
						return
					}
				}
			}
		})
		training := loop.New(loop.On(loop.EachStep, step))
		must.M1(training.Run(t.Context(), state, source, loop.Until(loop.Steps(400)), harder, checkpoint.Resume(t.TempDir(), saved), loop.Options(options...)))
		return levels
	}
	levels := trained()
	require.Equal(t, []int{1, 1}, levels[:2])
	require.Equal(t, 4, levels[399])
	require.Equal(t, levels[:400], trained(loop.SingleSteps())[:400])
}

// A read on another goroutine shows each step whose batch was handed out. One in a Prefetch is an error.
func TestStateDependentData_otherGoroutine(t *testing.T) {
	set := line(64)
	trained := func(pulled bool, options ...loop.Option) (seen []any, err error) {
		state := must.M1(managed.New(jit(), managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done()))))
		defer state.Close()
		step := managed.TrainStep(func(b *managed.Builder) {
			b.Loss("loss", losses.SquaredError(b.Field("y"), nn.Dense{Units: 1}.Apply(b.Scope(), b.Field("x"))))
		})
		defer step.Close()
		must.M(step.Prepare(t.Context(), state, must.M1(data.Peek(set.Batches(1).All()))))
		reading := data.Map(set.Batches(1).All(), func(b data.Batch) (data.Batch, error) {
			weights, err := state.Value("/kernel")
			if err == nil {
				seen = append(seen, weights.Value())
			}
			return b, err
		})
		source := data.Prefetch(reading, 2)
		if pulled {
			source = func(yield func(data.Batch, error) bool) {
				next, stop := iter.Pull2(reading)
				defer stop()
				for b, err, more := next(); more && yield(b, err); b, err, more = next() {
				}
			}
		}
		_, err = loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, loop.Data[data.Batch](source), options...)
		return seen, err
	}
	seen, err := trained(true)
	require.NoError(t, err)
	single, err := trained(true, loop.SingleSteps())
	require.NoError(t, err)
	require.Len(t, seen, 64)
	require.Equal(t, single, seen)
	for _, option := range []loop.Option{nil, loop.SingleSteps()} {
		_, err = trained(false, option)
		require.ErrorContains(t, err, "outside Prefetch and ParallelMap")
	}
}
