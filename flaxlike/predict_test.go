package flaxlike_test

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/serve"
)

// R02: without a training all answers are the same bits, whoever asks.
//
//lazo:race
func TestR02_predictByManyGoroutines(t *testing.T) {
	m := newModel(t, mlp())
	set, _ := digits(t)
	var batches []data.Batch
	var want []map[string]data.Array
	for b, err := range set.Batches(16).All() {
		require.NoError(t, err)
		if len(batches) == 8 {
			break
		}
		out, err := m.Answer(t.Context(), b)
		require.NoError(t, err)
		batches, want = append(batches, b), append(want, out)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range besideAFit / 8 {
				at := (g + i) % len(batches)
				out, err := m.Answer(t.Context(), batches[at])
				if err != nil || fmt.Sprint(out) != fmt.Sprint(want[at]) {
					t.Errorf("call %d of goroutine %d: another answer (%v)", i, g, err)
					return
				}
			}
		})
	}
	wg.Wait()
	t.Logf("R02: %d predictions by 8 goroutines: the same bits", besideAFit/8*8)
}

// F53: a model that is never closed costs no threads, as all of them have one runtime; and Predict takes ever new sizes
// of batch.
func TestF53_modelsNeverClosed(t *testing.T) {
	threads := func() int {
		list, err := os.ReadDir("/proc/self/task")
		require.NoError(t, err)
		return len(list)
	}
	made := func() *flaxlike.Model {
		m, err := flaxlike.New(t.Context(), nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
		require.NoError(t, err)
		require.NoError(t, m.Init(t.Context(), first(t, line(t, 4), 4)))
		return m
	}
	before := threads()
	one := made()
	warm := threads()
	var open []*flaxlike.Model
	for range modelsLeftOpen {
		open = append(open, made())
	}
	grown := threads() - before
	require.LessOrEqual(t, grown, 8+(warm-before), "threads")
	require.LessOrEqual(t, threads()-warm, 8, "threads")
	for _, m := range open {
		require.NoError(t, errors.Join(m.Close(), m.Close()))
	}
	for n := 1; n <= sizesPredicted; n++ {
		out, err := one.Answer(t.Context(), first(t, line(t, n), n))
		require.NoError(t, err, "size %d", n)
		require.Equal(t, []int{n, 1}, out["preds"].Dims)
	}
	require.LessOrEqual(t, len(one.Summary().Layers), 1)
	require.NoError(t, one.Close())
	_, err := one.Answer(t.Context(), first(t, line(t, 4), 4))
	require.ErrorIs(t, err, managed.ErrClosed)
	t.Logf("F53: %d models never closed: %+d threads after the first; %d sizes of batch: none refused", modelsLeftOpen, threads()-warm, sizesPredicted)
}

// Outputs of different sizes in two batches are no array: Predict is an error, and PredictBatches returns them.
func TestPredict_ofSizesThatDiffer(t *testing.T) {
	set := must.M1(must.M1(data.New(data.X([]float32{1, 0, 1, 1}, 2, 2))).MapBatches(func(b data.Batch) (data.Batch, error) {
		if x := b.Fields[0].Array.Flat.([]float32); x[len(x)-1] == 0 {
			b.Fields = []data.Field{data.X(x[:1], 1, 1)}
		}
		return b, nil
	}))
	same := nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node { return x })
	m := newModel(t, same, flaxlike.WithLoss("mse"), flaxlike.WithBatchSize(1))
	_, err := m.Predict(t.Context(), set)
	require.ErrorContains(t, err, `flaxlike: predict: output "preds": an example's output is [1] in one batch and [2] in another: PredictBatches`)
	n := 0
	for p, err := range m.PredictBatches(t.Context(), set.Batches(1)) {
		require.NoError(t, err)
		n += must.M1(p.Output()).Size()
	}
	require.Equal(t, 3, n)
}

// A model whose layers report losses and metrics of their own predicts any number of examples.
func TestPredict_ofAModelThatReports(t *testing.T) {
	m := newModel(t, nn.Func(func(scope *model.Scope, x *graph.Node) *graph.Node {
		h := nn.Dense{Units: 3}.Apply(scope.In("h"), x)
		managed.AddLoss("activity", graph.ReduceAllMean(graph.Square(h)))
		managed.AddMetric("largest", graph.ReduceAllMax(h))
		return h
	}), flaxlike.WithLoss(sparse), flaxlike.WithBatchSize(32))
	set := sorted(t, 50)
	out, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	require.Equal(t, []int{50, 3}, output(t, out).Dims)
	require.Equal(t, []int{50}, must.M1(out.Classes()).Dims)
	figures, err := m.Evaluate(t.Context(), must.M1(set.Slice(0, 32)))
	require.NoError(t, err)
	require.Contains(t, figures, "activity")
}

// A prediction takes its turn at the state once, its batch is divided once, and its run reads the outputs.
func TestAnswer_takesOneTurn(t *testing.T) {
	var fetches, batches atomic.Int64
	set := sorted(t, 32)
	m := newModel(t, nn.Dense{Units: 3}, flaxlike.WithStrategy(counting{jit(t), &fetches, &batches}))
	batch := first(t, set, 32)
	for range 3 { // the first compiles
		batches.Store(0)
		fetches.Store(0)
		_, err := m.Answer(t.Context(), batch)
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, batches.Load())
	require.Zero(t, fetches.Load())
}

// An example that the network cannot take is an error that names its field.
func TestS36_exampleOfOtherDims(t *testing.T) {
	set := line(t, 8)
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
	_, err := m.Evaluate(t.Context(), set)
	require.NoError(t, err)
	_, err = m.PredictOne(t.Context(), data.X(make([]float32, 3), 3))
	require.ErrorContains(t, err, `flaxlike: predict: field "x" is float32[3] for an example, and was float32[1] when the network was built`)
	wide := must.M1(data.New(data.X(make([]float32, 12), 4, 3), data.Y(make([]float32, 4), 4, 1)))
	_, err = m.Evaluate(t.Context(), wide)
	require.ErrorContains(t, err, `flaxlike: evaluate: `)
	require.ErrorContains(t, err, `field "x" is float32[3] for an example, and was float32[1] when the network was built`)
	_, err = m.Fit(t.Context(), wide, quiet(flaxlike.Fit{}))
	require.ErrorContains(t, err, `field "x" is float32[3] for an example, and was float32[1] when the network was built`)
	require.ErrorIs(t, err, serve.ErrInput)
	_, err = m.PredictOne(t.Context(), data.X(make([]float32, 1), 1, 1))
	require.ErrorContains(t, err, "leave the batch axis out")
	require.ErrorIs(t, err, serve.ErrInput)
	_, err = m.PredictOne(t.Context(), data.X(make([]float32, 1), 1))
	require.NoError(t, err)
	lengths := newModel(t, nn.GlobalMeanPool{}, flaxlike.WithLoss("mse"))
	for _, n := range []int{3, 5} { // any length is right
		_, err = lengths.PredictOne(t.Context(), data.X(make([]float32, 2*n), n, 2))
		require.NoError(t, err)
	}
}
