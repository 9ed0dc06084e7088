package flaxlike_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

// Of the nightly form, in its file.
var (
	besideAFit     = 3_000 // calls of Predict during a Fit
	besideFor      = 150 * time.Millisecond
	modelsLeftOpen = 30
	sizesPredicted = 12
)

const wide = 256

// counted is a network of two variables, all of whose numbers are how many training steps there were: what is said of
// two moments shows. It says the input, twice as large, and the variables.
func counted(scope *model.Scope, x *graph.Node) *graph.Node {
	n := x.Shape().Dimensions[0]
	all := []*graph.Node{graph.MulScalar(x, 2)}
	for _, name := range []string{"one", "two"} {
		v := scope.VariableWithValue(name, make([]float32, wide)).NodeValue(x.Graph())
		all = append(all, graph.BroadcastToDims(graph.ExpandAxes(v, 0), n, wide))
	}
	return graph.Concatenate(all, -1)
}

// counts has a gradient of -1 for each number of counted. It says, of each example, minus the sum of all numbers.
func counts(_, output *graph.Node) *graph.Node {
	return graph.Neg(graph.ReduceSum(graph.Slice(output, graph.AxisRange(), graph.AxisRange(1)), -1))
}

func countedModel(t *testing.T) *flaxlike.Model {
	return newModel(t, nn.Func(counted), flaxlike.WithBatchSize(4), flaxlike.WithLoss(flaxlike.Loss{Name: "steps", Func: counts}),
		flaxlike.WithOptimizer(optim.GoMLX(optimizer.StochasticGradientDescent().WithDecay(false).WithLearningRate(1).Done())))
}

func filled(t testing.TB, n int, of float32) *data.Set {
	x := make([]float32, n)
	for i := range x {
		x[i] = of
	}
	set, err := data.New(data.X(x, n, 1), data.Y(x, n, 1))
	require.NoError(t, err)
	return set
}

func sawAll(p flaxlike.Prediction, of float32, rows int) (float32, error) {
	a, err := p.Output()
	if err != nil {
		return 0, err
	}
	return saw(map[string]data.Array{"preds": a}, of, rows)
}

// saw returns the number of steps after which a prediction of all its rows was made.
func saw(out map[string]data.Array, of float32, rows int) (step float32, err error) {
	flat := out["preds"].Flat.([]float32)
	if len(flat) != rows*(1+2*wide) {
		return 0, fmt.Errorf("%d numbers for %d rows", len(flat), rows)
	}
	step = flat[1]
	for r := range rows {
		row := flat[r*(1+2*wide):][:1+2*wide]
		if row[0] != 2*of {
			return 0, fmt.Errorf("asked for %v, got an answer for %v", of, row[0]/2)
		}
		for _, v := range row[1:] {
			if v != step || v != float32(int(v)) {
				return 0, fmt.Errorf("after %v steps and after %v, in one prediction", step, v)
			}
		}
	}
	return step, nil
}

// A Predict whose consumer takes without end makes no one wait: neither a training, nor another Predict.
//
//lazo:race
func TestF46_aReaderThatNeverEnds(t *testing.T) {
	m := countedModel(t)
	inside, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var out flaxlike.Prediction
	var err error
	var wg sync.WaitGroup
	wg.Go(func() {
		out, err = m.Predict(t.Context(), filled(t, 12, 5), loop.Watch(loop.EachStep, func(ctx context.Context, _ loop.Report) error {
			once.Do(func() {
				close(inside)
				<-leave
			})
			_, err := m.Predict(ctx, filled(t, 9, 1))
			return err
		}))
	})
	<-inside
	_, fitErr := m.Fit(t.Context(), filled(t, 32, 1), flaxlike.Fit{Epochs: 3, Output: io.Discard})
	require.NoError(t, fitErr)
	close(leave)
	wg.Wait()
	require.NoError(t, err)
	step, err := sawAll(out, 5, 12)
	require.NoError(t, err)
	require.Zero(t, step, "the weights of its first batch")
}

// TestS24_closeByMany: a model that several goroutines close gives its runtime back once it is freed, and not before.
//
//lazo:race
func TestS24_closeByMany(t *testing.T) {
	const models, goroutines = 40, 4
	for range models {
		m, err := flaxlike.New(t.Context(), nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
		require.NoError(t, err)
		_, _, err = m.TrainStep(t.Context(), first(t, line(t, 4), 4))
		require.NoError(t, err)
		begin, errs := make(chan struct{}), make([]error, goroutines)
		var wg sync.WaitGroup
		for i := range goroutines {
			wg.Go(func() { <-begin; errs[i] = m.Close() })
		}
		close(begin)
		wg.Wait()
		require.NoError(t, errors.Join(errs...))
	}
	t.Logf("S24: %d models closed by %d goroutines each: no error", models, goroutines)
}
