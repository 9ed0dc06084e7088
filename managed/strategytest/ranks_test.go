package strategytest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/internal/ranks"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// Each rank is a process; they exchange by MPI.
//
//lazo:norace
func TestRanks(t *testing.T) {
	for _, n := range rankCounts {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			if !ranks.Over(t, n) {
				return
			}
			job, err := dist.Join(t.Context())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, job.Close()) })
			parallel := func(t *testing.T, options strategies.Parallel) strategies.Strategy {
				s, err := strategies.DataParallel(plugintest.CPU(t, xla.Across(job)), options)
				require.NoError(t, err)
				return s
			}
			t.Run("whole", func(t *testing.T) {
				Run(t, func(t *testing.T) strategies.Strategy { return parallel(t, strategies.Parallel{}) })
			})
			sharded := func(t *testing.T) strategies.Strategy {
				return parallel(t, strategies.Parallel{Shard: strategies.FullyShard(n, 2)})
			}
			t.Run("sharded", func(t *testing.T) { Run(t, sharded) })
			t.Run("the bits of devices", func(t *testing.T) { bitsOfDevices(t, parallel(t, strategies.Parallel{}), n) })
			t.Run("agreements of a step", func(t *testing.T) { agreementsOfAStep(t, job, parallel(t, strategies.Parallel{})) })
			t.Run("one of them is told to end", func(t *testing.T) { endsEverywhere(t, job, parallel(t, strategies.Parallel{})) })
			t.Run("refusals", func(t *testing.T) { rankRefusals(t, job, parallel(t, strategies.Parallel{})) })
			t.Run("F61 other shapes", func(t *testing.T) { otherShapes(t, job, parallel(t, strategies.Parallel{})) })
			t.Run("F62 unequal data", func(t *testing.T) { unequalData(t, job, parallel(t, strategies.Parallel{})) })
			t.Run("other values are fetched", func(t *testing.T) { otherValues(t, job, sharded(t)) })
		})
	}
}

// bitsOfDevices: n processes compute what n devices of one do, and the same from parts of batches as from whole ones.
func bitsOfDevices(t *testing.T, s strategies.Strategy, n int) {
	logs, values := trained(t, s, 24, 1)
	for _, block := range []int{1, 12} {
		partLogs, partValues := trained(t, s, 24, block, data.Share(s.Runtime().Job().Rank(), n))
		require.Equal(t, logs, partLogs, "parts, blocks of %d", block)
		require.Equal(t, values, partValues, "parts, blocks of %d", block)
	}
	if n > 2 { // sums of more than two numbers depend on their order
		return
	}
	devices, err := strategies.DataParallel(plugintest.Devices(t, n), strategies.Parallel{})
	require.NoError(t, err)
	wantLogs, wantValues := trained(t, devices, 24, 1)
	require.Equal(t, wantLogs, logs)
	require.Equal(t, wantValues, values)
}

// agreementsOfAStep: a loop's step has two messages besides its exchange: the loop's, and the comparison of program and
// batch.
func agreementsOfAStep(t *testing.T, job *dist.Job, s strategies.Strategy) {
	state, err := managed.New(s, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	require.NoError(t, err)
	step := managed.TrainStep(small)
	defer func() { require.NoError(t, errors.Join(step.Close(), state.Close())) }()
	run := func(steps int64) (calls int64) {
		before := job.Calls()
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step.Step))).Run(t.Context(), state, wave(t, 256).Batches(32), loop.Until(loop.Steps(steps)))
		require.NoError(t, err)
		return int64(job.Calls() - before)
	}
	run(2) // compiles
	short := run(10)
	require.EqualValues(t, 2*20, run(30)-short, "calls of 20 steps")
}

// Over four processes, and eight, the sums have another order than in one: the numbers stay close, and are the same to
// the bit on all ranks.
func TestRanks_likeJit(t *testing.T) {
	for _, n := range likeJit {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			if !ranks.Over(t, n) {
				return
			}
			job, err := dist.Join(t.Context())
			require.NoError(t, err)
			const far = 5e-7
			got := hundredSteps(t, plugintest.CPU(t, xla.Across(job)))
			sum := fnv.New64a()
			fmt.Fprint(sum, got)
			same, err := job.Same("what was trained", int64(sum.Sum64()))
			require.NoError(t, err)
			require.True(t, same, "all ranks have the same bits")
			if job.Rank() == 0 {
				want := hundredSteps(t, plugintest.CPU(t))
				require.Len(t, got, len(want))
				worst := 0.0
				for i := range want {
					worst = max(worst, math.Abs(got[i]-want[i])/max(1, math.Abs(want[i])))
				}
				require.Less(t, worst, far)
				fmt.Fprintf(os.Stderr, "%d ranks: %d numbers after 100 Adam steps at most %.1e from jit's\n", n, len(want), worst)
			}
			require.NoError(t, job.Close())
		})
	}
}

// hundredSteps are the losses and the values of an MLP without dropout.
func hundredSteps(t *testing.T, on *xla.Runtime) (all []float64) {
	s := strategies.Jit(on)
	if on.Job() != nil {
		var err error
		s, err = strategies.DataParallel(on, strategies.Parallel{})
		require.NoError(t, err)
	}
	state, err := managed.New(s, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().LearningRate(0.001).Done())))
	require.NoError(t, err)
	step := managed.TrainStep(func(b *managed.Builder) {
		h := graph.Tanh(layers.Dense(b.Scope().In("a"), b.Field("x"), true, 32))
		h = graph.Tanh(layers.Dense(b.Scope().In("b"), h, true, 32))
		b.Loss("loss", graph.Square(graph.Sub(layers.Dense(b.Scope().In("c"), h, true, 1), b.Field("y"))))
	})
	defer func() { require.NoError(t, errors.Join(step.Close(), state.Close())) }()
	for b, err := range data.Take(wave(t, 256).Batches(64, data.Shuffle(3)).From(0), 100) {
		require.NoError(t, err)
		_, logs, err := step.Step(t.Context(), state, b)
		require.NoError(t, err)
		loss, err := logs.Float("loss")
		require.NoError(t, err)
		all = append(all, loss)
	}
	for _, name := range state.Names() {
		v, err := state.Value(name)
		require.NoError(t, err)
		all = append(all, numbers(t, v)...)
	}
	return all
}

// endsEverywhere: a context that ends in one process ends the runs of all after the same step.
func endsEverywhere(t *testing.T, job *dist.Job, s strategies.Strategy) {
	state, err := managed.New(s, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	require.Equal(t, job, state.Job())
	step := managed.TrainStep(deep)
	defer func() { require.NoError(t, step.Close()) }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	batches := func(yield func(data.Batch, error) bool) {
		n := 0
		for b, err := range wave(t, 256).Batches(32).From(0) {
			if n++; n == 150 && job.Rank() == job.Size()-1 {
				cancel()
			}
			if !yield(b, err) {
				return
			}
		}
	}
	result, err := loop.New(loop.On(loop.EachStep, step)).Run(ctx, state, loop.Data[data.Batch](batches))
	require.Error(t, err)
	require.Equal(t, loop.Cancelled, result.Reason)
	steps := []int64{result.Elapsed.Steps, -result.Elapsed.Steps}
	require.NoError(t, job.Agree(steps))
	require.Equal(t, steps[0], -steps[1], "steps of the rank that made most, and of that which made fewest")
	require.NotZero(t, steps[0])
}

// otherShapes: a batch of another form on one rank is an error on all, and they go on.
func otherShapes(t *testing.T, job *dist.Job, s strategies.Strategy) {
	state, err := managed.New(s, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	require.NoError(t, err)
	step := managed.TrainStep(small)
	defer func() { require.NoError(t, errors.Join(step.Close(), state.Close())) }()
	try := func(b data.Batch) error { _, _, err := step.Step(t.Context(), state, b); return err }
	examples := 8 * job.Size()
	if job.Rank() == job.Size()-1 {
		examples *= 2
	}
	err = try(zeros(t, examples, 8))
	require.ErrorIs(t, err, dist.ErrDisagree)
	t.Logf("F61: %v", err)
	require.NoError(t, try(zeros(t, 8*job.Size(), 8)))
}

// zeros is a batch for small.
func zeros(t *testing.T, examples, columns int, order ...data.Option) (batch data.Batch) {
	set, err := data.New(data.X(make([]float32, examples*columns), examples, columns), data.Y(make([]float32, examples), examples, 1))
	require.NoError(t, err)
	for b, err := range set.Batches(examples, order...).All() {
		require.NoError(t, err)
		batch = b
	}
	return batch
}

// unequalData: where the data of one rank ends earlier, the runs of all end with an error that says so.
func unequalData(t *testing.T, job *dist.Job, s strategies.Strategy) {
	state, err := managed.New(s, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	require.NoError(t, err)
	step := managed.TrainStep(small)
	defer func() { require.NoError(t, errors.Join(step.Close(), state.Close())) }()
	batches := int64(9)
	if job.Rank() == job.Size()-1 {
		batches = 5
	}
	result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, loop.Data[data.Batch](data.Take(wave(t, 32*job.Size()).Batches(32).From(0), batches)))
	require.ErrorContains(t, err, fmt.Sprintf("the data of rank %d ended after 5 batches, rank ", job.Size()-1))
	require.ErrorContains(t, err, "it must have the same number of batches in each process")
	require.EqualValues(t, 5, result.Elapsed.Steps)
	t.Logf("F62: %v", err)
}

// otherValues: ranks that fetch values of one shape in another order would put parts of two together.
func otherValues(t *testing.T, job *dist.Job, s strategies.Strategy) {
	n := job.Size()
	put := func(name string) compute.Buffer {
		b, err := s.Put(name, tensors.FromFlatDataAndDimensions(make([]float32, 64*n), 8*n, 8))
		require.NoError(t, err)
		return b
	}
	a, b := put("a"), put("b")
	if job.Rank() == n-1 {
		a, b = b, a
	}
	for _, v := range []compute.Buffer{a, b} {
		_, err := s.Fetch(v)
		require.ErrorIs(t, err, dist.ErrDisagree)
		require.ErrorContains(t, err, "fetches another value")
	}
	require.NoError(t, s.Free(a, b))
}

// rankRefusals: what would be wrong numbers, or a wait without end, is an error on all ranks, and they go on.
func rankRefusals(t *testing.T, job *dist.Job, s strategies.Strategy) {
	state := func(seed int64) error {
		state, err := managed.New(s, managed.WithSeed(seed))
		require.NoError(t, err)
		step := managed.TestStep(deep)
		defer func() { require.NoError(t, errors.Join(step.Close(), state.Close())) }()
		for b := range wave(t, 32).Batches(32).All() {
			_, _, err = step.Step(t.Context(), state, b)
		}
		return err
	}
	require.ErrorIs(t, state(int64(job.Rank())), dist.ErrDisagree, "other initial values on each rank")

	held, err := managed.New(s, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	require.NoError(t, err)
	other := managed.TestStep(deep)
	for b := range wave(t, 64).Batches(32, data.Shuffle(uint64(job.Rank()))).All() {
		_, _, err = other.Step(t.Context(), held, b)
		require.ErrorIs(t, err, dist.ErrDisagree)
		require.ErrorContains(t, err, "batches for this step differ")
	}
	require.NoError(t, errors.Join(other.Close(), held.Close()))

	compile := func(width int) error {
		p, err := s.Runtime().CompileOver(xla.Placement{Mesh: xla.Mesh{Axes: []xla.MeshAxis{{Name: "data", Size: job.Size()}}}}, "other", func(g *graph.Graph) xla.Built {
			return xla.Built{Outputs: []*graph.Node{graph.ReduceAllSum(graph.Parameter(g, "x", shapes.Make(dtypes.Float32, width)))}, Host: []int{0}}
		})
		if err == nil {
			require.NoError(t, p.Close())
		}
		return err
	}
	require.NoError(t, compile(4))
	err = compile(8 + job.Rank())
	require.ErrorIs(t, err, dist.ErrDisagree)
	require.ErrorContains(t, err, "rank 1: compile other, line ")
	require.ErrorContains(t, err, "that of rank 0 ")

	_, err = s.Batch(data.Batch{Fields: []data.Field{data.X(make([]float32, 4), 4)}, Part: data.Part{Rank: job.Rank(), Of: job.Size() + 1, Samples: 4}})
	require.ErrorContains(t, err, "expected a whole one, or part")
	_, err = strategies.Jit(s.Runtime()).Put("x", tensors.FromScalar(float32(1)))
	require.ErrorContains(t, err, "use DataParallel")
	_, err = strategies.DataParallel(s.Runtime(), strategies.Parallel{Devices: 1})
	require.ErrorContains(t, err, "expected all")
}
