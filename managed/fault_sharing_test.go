package managed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// besideFor is the duration of each row of F46; the nightly form takes 20 s.
var besideFor = 100 * time.Millisecond

// wide is the length of both variables of counted.
const wide = 512

// counted is a model of two variables whose elements all equal the number of training steps, so that a read from within
// a step is detected. Its output is the batch's numbers, doubled, and the variables.
func counted(b *managed.Builder) {
	x := b.Field("x")
	n := x.Shape().Dimensions[0]
	variable := func(name string) *graph.Node {
		v := b.Scope().VariableWithValue(name, make([]float32, wide)).NodeValue(b.Graph())
		return graph.BroadcastToDims(graph.ExpandAxes(v, 0), n, wide)
	}
	one, two := variable("one"), variable("two")
	all := graph.Concatenate([]*graph.Node{graph.MulScalar(x, 2), one, two}, -1)
	// The gradient of each number is -1.
	b.Loss("loss", graph.Neg(graph.Add(graph.ReduceSum(one, -1), graph.ReduceSum(two, -1))))
	if !b.Training() {
		b.Output("all", all)
	}
}

// evaluated is counted without the output, so that it is made in blocks, with averages.
func evaluated(b *managed.Builder) {
	one := b.Scope().VariableWithValue("one", make([]float32, wide)).NodeValue(b.Graph())
	b.Loss("loss", graph.Add(graph.ReduceAllMean(one), graph.MulScalar(graph.ReduceAllMean(b.Field("x")), 0)))
}

func plainSGD() *optim.Optimizer {
	return optim.GoMLX(optimizer.StochasticGradientDescent().WithDecay(false).WithLearningRate(1).Done())
}

// same returns the number that all elements are equal to, or an error if they differ or it is not whole.
func same(numbers []float32) (float32, error) {
	for _, v := range numbers {
		if v != numbers[0] || v != float32(int(v)) {
			return 0, fmt.Errorf("%v beside %v: of two moments", v, numbers[0])
		}
	}
	return numbers[0], nil
}

func rowsOf(t testing.TB, rows int, of float32) data.Batch {
	x := make([]float32, rows)
	for i := range x {
		x[i] = of
	}
	set, err := data.New(data.X(x, rows, 1))
	require.NoError(t, err)
	for b, err := range set.Batches(rows).All() {
		require.NoError(t, err)
		return b
	}
	panic("no batch")
}

// saw looks at what a prediction said.
func saw(logs loop.Logs, of float32) (float32, error) {
	a, err := managed.Array(logs, "all")
	if err != nil {
		return 0, err
	}
	flat := a.Flat.([]float32)
	var seen []float32
	for len(flat) > 0 {
		if flat[0] != 2*of {
			return 0, fmt.Errorf("asked for %v, got an answer for %v", of, flat[0]/2)
		}
		seen, flat = append(seen, flat[1:1+2*wide]...), flat[1+2*wide:]
	}
	return same(seen)
}

// sizes are those of batches to predict for; some occur first during the training.
var sizes = []int{4, 4, 4, 4, 4, 4, 4, 1, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 2}

// user is a repeated use of a state during a training.
type user struct {
	name string
	do   func(u *using, i int) error
}

// using is a state in use.
type using struct {
	ctx         context.Context
	t           *testing.T
	state       *managed.State
	train, test *managed.Stepper
	tracked     *managed.Stepper
	strategy    func() strategies.Strategy
}

var users = []user{
	{"Value", func(u *using, _ int) error {
		var all []float32
		values, err := u.state.Values("/one", "/two")
		for _, v := range values {
			flat, err := tensors.CopyFlatData[float32](v)
			if err != nil {
				return err
			}
			all = append(all, flat...)
		}
		if err == nil {
			_, err = same(all)
		}
		return err
	}},
	{"Content", func(u *using, _ int) error { // what a checkpoint saves
		c, err := u.state.Content(u.ctx)
		if err != nil {
			return err
		}
		var all []float32
		for _, t := range c.Tensors {
			var b bytes.Buffer
			if err := t.Write(&b); err != nil {
				return err
			}
			if t.Name == "/one" || t.Name == "/two" {
				all = append(all, unsafe.Slice((*float32)(unsafe.Pointer(&b.Bytes()[0])), wide)...)
			}
		}
		_, err = same(all)
		return err
	}},
	{"Snapshot", func(u *using, _ int) error {
		s, err := u.state.Snapshot(u.ctx)
		if err != nil {
			return err
		}
		return s.Close()
	}},
	{"Clone", func(u *using, _ int) error {
		c, err := u.state.Clone(u.ctx, u.strategy())
		if err != nil {
			return err
		}
		v, err := c.Values("/one", "/two")
		if err == nil {
			one, _ := tensors.CopyFlatData[float32](v[0])
			two, _ := tensors.CopyFlatData[float32](v[1])
			_, err = same(append(one, two...))
		}
		return errors.Join(err, c.Close())
	}},
	{"SetLearningRate", func(u *using, _ int) error {
		_, err := u.state.LearningRate()
		return errors.Join(err, u.state.SetLearningRate(1))
	}},
	{"SetValue", func(u *using, _ int) error { return u.state.SetValue("/free", tensors.FromValue([]float32{1})) }},
	{"Predict", func(u *using, i int) error { // of sizes that are compiled meanwhile, too
		of := float32(i % 4000)
		_, logs, err := u.test.Step(u.ctx, u.state, rowsOf(u.t, sizes[i%len(sizes)], of))
		if err == nil {
			_, err = saw(logs, of)
		}
		return err
	}},
	{"View", func(u *using, i int) error { // a test of several batches
		v, err := u.state.View(u.ctx)
		if err != nil {
			return err
		}
		if i%2 == 0 {
			var b []data.Batch
			for range 5 {
				b = append(b, rowsOf(u.t, 4, 1))
			}
			var logs []loop.Logs
			if logs, err = v.StepBlock(u.ctx, u.tracked, b); err == nil {
				var last, mean float64
				last, _ = logs[4].Float("loss")
				if mean, err = logs[4].Float("avg_loss"); err == nil && (mean != last || last != float64(int(last))) {
					err = fmt.Errorf("a mean of %v over five batches, the last %v: of several moments", mean, last)
				}
			}
			return errors.Join(err, v.Await(), v.Close())
		}
		var seen []float32
		for k := range 3 {
			logs, stepErr := v.Step(u.ctx, u.test, rowsOf(u.t, 4, float32(k)))
			if err = stepErr; err != nil {
				break
			}
			n, sawErr := saw(logs, float32(k))
			if err = sawErr; err != nil {
				break
			}
			seen = append(seen, n)
		}
		if err == nil {
			_, err = same(seen)
		}
		return errors.Join(err, v.Close())
	}},
	{"Step", func(u *using, _ int) error { // another training
		_, _, err := u.train.Step(u.ctx, u.state, rowsOf(u.t, 4, 1))
		return err
	}},
	{"Stepper.Close", func(u *using, i int) error {
		time.Sleep(time.Millisecond)
		return errors.Join(u.test.Close(), u.tracked.Close())
	}},
	{"looking", func(u *using, _ int) error {
		_, _, _, _ = u.state.Names(), u.state.Parameters(), u.state.Summary(), u.test.StableHLO()
		_, _, _ = u.state.Strategy(), u.state.Versions(), u.test.CompileTime()
		return errors.Join(u.state.Wait(), u.state.DumpXLA(u.t.TempDir()))
	}},
}

// F46, R21: several goroutines use a state and its steps: each use during a training by two goroutines at a time, then
// all at once, then Close while all run. Nothing panics, no use sees values from within a step, the training computes
// what it computes alone, and all errors are typed.
//
//lazo:race
func TestF46_stateBesideATraining(t *testing.T) {
	rows := map[string][]user{"all": users}
	for _, u := range users {
		rows[u.name] = []user{u, u}
	}
	counts := map[string]int{}
	r := plugintest.CPU(t)
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range rows {
			if !yield(name) {
				return
			}
		}
	}) {
		for what, n := range beside(t, r, func(r *xla.Runtime) strategies.Strategy { return strategies.Jit(r) }, rows[name], besideFor/2) {
			counts[what] += n
		}
	}
	t.Logf("F46: a State and its Steppers, %d sets of users beside StepBlock, %v each, then Close: 0 panics, 0 wrong values; %v", len(rows), besideFor, counts)
}

// The other strategies have the same rule: on four devices, and operation by operation, where each step builds.
//
//lazo:race
func TestF46_otherStrategies(t *testing.T) {
	four := plugintest.CPU(t, xla.ClientOption("cpu_device_count", 4))
	counts := beside(t, four, func(r *xla.Runtime) strategies.Strategy {
		s, err := strategies.DataParallel(r, strategies.Parallel{Pad: true})
		require.NoError(t, err)
		return s
	}, slices.DeleteFunc(slices.Clone(users), func(u user) bool { return u.name == "Predict" }), besideFor/2) // its rows are padded there
	t.Logf("F46: on four devices: %v", counts)
	counts = beside(t, four, func(r *xla.Runtime) strategies.Strategy { return strategies.Eager(r) }, users, besideFor/2)
	t.Logf("F46: eager: %v", counts)
}

// All users run during a training, and then the state is closed while they run.
func beside(t *testing.T, r *xla.Runtime, on func(*xla.Runtime) strategies.Strategy, users []user, for_ time.Duration) map[string]int {
	t.Helper()
	state, err := managed.New(on(r), managed.WithOptimizer(plainSGD()))
	require.NoError(t, err)
	free := func(b *managed.Builder) {
		counted(b)
		_ = b.Scope().VariableWithValue("free", []float32{0}).SetTrainable(false).NodeValue(b.Graph())
	}
	u := &using{ctx: t.Context(), t: t, state: state, train: managed.TrainStep(free, managed.RunningAverages()), test: managed.TestStep(counted),
		tracked: managed.TestStep(evaluated, managed.RunningAverages()), strategy: func() strategies.Strategy { return on(r) }}
	var block []data.Batch
	for range 7 {
		block = append(block, rowsOf(t, 4, 1))
	}
	_, _, err = u.train.StepBlock(t.Context(), state, block)
	require.NoError(t, err)
	_, _, err = u.train.Step(t.Context(), state, block[0])
	require.NoError(t, errors.Join(err, u.tracked.Prepare(t.Context(), state, block[0])))
	_, _, err = u.test.Step(t.Context(), state, block[0])
	require.NoError(t, err)

	var closing, stop atomic.Bool
	var mu sync.Mutex
	counts := map[string]int{}
	note := func(what string, err error) bool {
		switch {
		case err == nil:
		case errors.Is(err, xla.ErrBusy):
			what = "busy"
			time.Sleep(100 * time.Microsecond)
		case errors.Is(err, managed.ErrClosed) && closing.Load():
			what = "closed"
		default:
			t.Errorf("%s: %v", what, err)
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		counts[what]++
		return what != "closed"
	}
	others := slices.ContainsFunc(users, func(u user) bool { return u.name == "Step" })
	var wg sync.WaitGroup
	wg.Go(func() {
		made := len(block) + 1
		for !stop.Load() {
			_, logs, err := u.train.StepBlock(t.Context(), state, block)
			for _, l := range logs {
				loss, lossErr := l.Float("loss")
				if lossErr == nil && !others && loss != float64(-2*wide*made) {
					lossErr = fmt.Errorf("the training's loss is %v after %d steps, expected %v", loss, made, -2*wide*made)
				}
				if lossErr != nil && !closing.Load() {
					t.Error(lossErr)
				}
				made++
			}
			if !note("block", err) {
				return
			}
		}
	})
	for _, use := range users {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				if !note(use.name, use.do(u, i)) {
					return
				}
			}
		})
	}
	time.Sleep(for_)
	closing.Store(true)
	time.Sleep(for_ / 2)
	require.NoError(t, state.Close())
	_, err = state.Value("/one")
	require.ErrorIs(t, err, managed.ErrClosed)
	stop.Store(true)
	wg.Wait()
	require.NoError(t, errors.Join(u.train.Close(), u.test.Close(), u.tracked.Close()))
	return counts
}
