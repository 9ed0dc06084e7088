package managed_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func shapeOf(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }

// greedy asks for 16 TiB: a product that XLA cannot fuse away, of 2^21 × 2^21 numbers.
func greedy(b *managed.Builder) {
	regression(b)
	column := graph.BroadcastToDims(graph.ReduceAllMax(b.Field("x")), 1<<21, 1)
	square := graph.Dot(column, graph.Reshape(column, 1, 1<<21)).Product()
	b.Metric("huge", graph.ReduceAllMax(graph.Dot(square, column).Product()))
}

// failingStrategy is a strategy of which one call, the one with the number at, fails.
type failingStrategy struct {
	strategies.Strategy
	calls, at int
	failed    string
}

var errInjected = errors.New("injected")

func (f *failingStrategy) fail(call string) error {
	if f.calls++; f.calls != f.at {
		return nil
	}
	f.failed = call
	return fmt.Errorf("%s: %w", call, errInjected)
}

func (f *failingStrategy) Put(name string, t *tensors.Tensor) (compute.Buffer, error) {
	if err := f.fail("put"); err != nil {
		return nil, err
	}
	return f.Strategy.Put(name, t)
}

func (f *failingStrategy) Fetch(b compute.Buffer) (*tensors.Tensor, error) {
	if err := f.fail("fetch"); err != nil {
		return nil, err
	}
	return f.Strategy.Fetch(b)
}

// Free frees, and then fails: what could not be freed cannot be told from what was.
func (f *failingStrategy) Free(buffers ...compute.Buffer) error {
	return errors.Join(f.Strategy.Free(buffers...), f.fail("free"))
}

func (f *failingStrategy) Compile(s strategies.Step) (strategies.Program, error) {
	if err := f.fail("compile"); err != nil {
		return nil, err
	}
	p, err := f.Strategy.Compile(s)
	return &failingProgram{p, f}, err
}

type failingProgram struct {
	strategies.Program
	of *failingStrategy
}

func (p *failingProgram) Start(state []compute.Buffer, batches []data.Batch) (changed, outputs []compute.Buffer, running strategies.Running, err error) {
	if err := p.of.fail("start"); err != nil {
		return nil, nil, nil, err
	}
	return p.Program.Start(state, batches)
}

// values are those that a training changes or reads, by name.
func values(t *testing.T, state *managed.State) map[string][]float32 {
	t.Helper()
	all := map[string][]float32{}
	for _, name := range state.Names() {
		v, err := state.Value(name)
		require.NoError(t, err)
		if v.DType() == dtypes.Float32 {
			all[name], err = tensors.CopyFlatData[float32](v)
			require.NoError(t, err)
		}
	}
	return all
}

// hiddenFour has a layer of four units, of which four devices can have one each.
func hiddenFour(b *managed.Builder) {
	h := layers.Dense(b.Scope().In("hidden"), b.Field("x"), true, 4)
	b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), layers.Dense(b.Scope().In("dense"), h, true, 1))))
}

// onFour is data parallel on four devices.
func onFour(t *testing.T, r *xla.Runtime, options strategies.Parallel) strategies.Strategy {
	t.Helper()
	s, err := strategies.DataParallel(r, options)
	require.NoError(t, err)
	return s
}

func failCallK(t *testing.T, on strategies.Strategy, build managed.Build) {
	t.Helper()
	batch := first(t, line(t, 16).Batches(16))
	const steps = 3
	// session trains until the steps are made, whatever fails; it gives the values after each step.
	session := func(t *testing.T, f *failingStrategy, want []map[string][]float32) (seen []map[string][]float32, errs []error) {
		state, err := managed.New(f, managed.WithOptimizer(sgd()))
		require.NoError(t, err)
		step := managed.TrainStep(build)
		for tries := 0; len(seen) < steps; tries++ {
			require.Less(t, tries, steps+2, "a step that failed once is to succeed then: %v", errs)
			_, logs, err := step.Step(t.Context(), state, batch)
			at := f.at
			f.at = -1 // while the test itself looks
			now := values(t, state)
			f.at = at
			if err != nil {
				errs = append(errs, err)
				if len(seen) > 0 {
					require.Contains(t, want[len(seen)-1:len(seen)+1], now, "%v", err)
					if fmt.Sprint(now) == fmt.Sprint(want[len(seen)]) { // the step was made, what followed failed
						seen = append(seen, now)
					}
				}
				continue
			}
			if _, err := logs.Float("loss"); err != nil {
				errs = append(errs, err)
			}
			seen = append(seen, now)
		}
		if err := errors.Join(step.Close(), state.Close()); err != nil {
			errs = append(errs, err)
		}
		return seen, errs
	}
	count := &failingStrategy{Strategy: on}
	want, errs := session(t, count, nil)
	require.Empty(t, errs)
	failures, kinds := 0, map[string]int{}
	before := pjrt.Live()
	for k := 1; k <= count.calls; k++ {
		f := &failingStrategy{Strategy: on, at: k}
		seen, errs := session(t, f, want)
		if f.failed == "" {
			continue // the test's own look
		}
		failures++
		kinds[f.failed]++
		require.Equal(t, want, seen, "call %d: %s", k, f.failed)
		require.NotEmpty(t, errs, "call %d: %s", k, f.failed)
		for _, err := range errs {
			require.ErrorIs(t, err, errInjected)
		}
		after := pjrt.Live()
		after.Collected = before.Collected
		require.Equal(t, before, after, "objects left after call %d: %s", k, f.failed)
	}
	t.Logf("F17: %v, %d calls of a training failed one by one (%v): each time the state of before or after the step, 0 objects left", on, failures, kinds)
}

// F20: a change of the learning rate compiles nothing; each shape of batch is a program, kept until the step's Close.
//
//lazo:norace
func TestF20_ratesAndShapes(t *testing.T) {
	var log bytes.Buffer
	r := plugintest.Uncached(t, xla.KeepPrograms(0), xla.Log(slog.New(slog.NewTextHandler(&log, nil))))
	state := newState(t, r, managed.WithOptimizer(sgd()))
	step, test := managed.TrainStep(regression), managed.TestStep(func(b *managed.Builder) { b.Metric("x", b.Field("x")) })
	batch := first(t, line(t, 16).Batches(16))
	for i := range 100 {
		_, _, err := step.Step(t.Context(), state, batch)
		require.NoError(t, err)
		require.NoError(t, state.SetLearningRate(0.1/float64(i+1)))
	}
	require.Len(t, step.StableHLO(), 1)
	before := pjrt.Live()
	const shapes = 40
	for n := 16; n < 16+shapes; n++ {
		_, _, err := test.Step(t.Context(), state, first(t, line(t, n).Batches(n)))
		require.NoError(t, err)
	}
	require.Len(t, test.StableHLO(), shapes)
	require.Equal(t, 1+shapes, strings.Count(log.String(), "xla: program compiled"))
	require.Equal(t, 1, strings.Count(log.String(), "level=WARN"))
	require.Regexp(t, `level=WARN msg="managed: the test step was compiled for 8 shapes of batches; each takes time and memory: give it batches of one shape" newest="\[\{x \(Float32\)\[23, 1\]\}`, log.String())
	require.EqualValues(t, shapes, pjrt.Live().Executables-before.Executables)
	require.NoError(t, errors.Join(step.Close(), test.Close()))
	require.EqualValues(t, -1, pjrt.Live().Executables-before.Executables)

	// The same step, closed and compiled again, leaves nothing.
	rebuild := func(times int) (heap, resident int64) {
		for range times {
			_, _, err := test.Step(t.Context(), state, batch)
			require.NoError(t, errors.Join(err, test.Close()))
		}
		f := takeFootprint(t)
		return f.heap, f.resident
	}
	rebuild(40)
	const maxHeap, maxResident = 1 << 20, 4 << 20
	heap, resident := int64(math.MaxInt64), int64(math.MaxInt64)
	// The C library allocates and frees some megabytes at times; a leak grows each time.
	for tries := 0; tries < 2 && (heap >= maxHeap || resident >= maxResident); tries++ {
		heapBefore, residentBefore := rebuild(5)
		heapAfter, residentAfter := rebuild(60)
		heap, resident = min(heap, heapAfter-heapBefore), min(resident, residentAfter-residentBefore)
	}
	require.Less(t, heap, int64(maxHeap))
	if !testing.Short() { // under the race detector, whose own memory says nothing
		require.Less(t, resident, int64(maxResident), "a program that is left takes 100 KiB, which nobody counts")
	}
	// Too many shapes are an error in a training; the compiled programs stay usable.
	few := stepper(t, managed.TrainStep(regression, managed.MaxShapes(3)))
	for n := 16; n < 20; n++ {
		_, _, err := few.Step(t.Context(), state, first(t, line(t, n).Batches(n)))
		if n < 19 {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, managed.ErrShapes)
		require.ErrorContains(t, err, "train step: too many shapes of batches: it was compiled for 3: give it batches of one shape")
	}
	_, _, err := few.Step(t.Context(), state, batch)
	require.NoError(t, err)
	t.Logf("F20: 60 rebuilds of a step: Go's heap %+d KiB, resident %+d KiB", heap>>10, resident>>10)
	t.Logf("F20: 100 changes of the rate: 1 program; %d shapes: %d programs, a warning at the 8th, 0 left after Close", shapes, shapes)
}

// R33: a test step that meets new shapes without end frees the least recently used program, and no other.
func TestR33_theProgramUsedLongestAgo(t *testing.T) {
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	step := stepper(t, managed.TestStep(func(b *managed.Builder) { b.Metric("x", b.Field("x")) }, managed.MaxShapes(3)))
	var log []string
	for _, n := range []int{1, 2, 3, 1, 4, 1, 3, 2, 5} {
		_, _, err := step.Step(t.Context(), state, rowsOf(t, n, 1))
		require.NoError(t, err)
		rows := ""
		for _, text := range step.StableHLO() {
			_, text, _ = strings.Cut(text, "tensor<")
			rows += text[:1]
		}
		log = append(log, rows)
	}
	require.Equal(t, []string{"1", "12", "123", "123", "134", "134", "134", "132", "325"}, log)
	dir := t.TempDir()
	require.NoError(t, state.DumpXLA(dir))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 3, "no more than are there")
}
