package managed_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// noisy is a model whose steps draw random numbers.
func noisy(b *managed.Builder) {
	h := layers.Dense(b.Scope().In("h"), b.Field("x"), true, 8)
	h = layers.Dropout(b.Scope().In("drop"), h, graph.Scalar(b.Graph(), h.DType(), 0.3))
	b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), layers.Dense(b.Scope().In("out"), h, true, 1))))
}

// bits are all values of a state, byte by byte.
func bits(t require.TestingT, state *managed.State) map[string][]byte {
	all := map[string][]byte{}
	for _, name := range state.Names() {
		v, err := state.Value(name)
		require.NoError(t, err)
		require.NoError(t, v.ConstBytes(func(b []byte) { all[name] = slices.Clone(b) }))
	}
	return all
}

// steps makes steps with the batches from i to j-1 of an endless sequence and gives their losses.
func steps(t require.TestingT, step *managed.Stepper, state *managed.State, set *data.Set, i, j int) []float64 {
	var losses []float64
	for b, err := range data.Take(set.Batches(16, data.Shuffle(3)).From(int64(i)), int64(j-i)) {
		require.NoError(t, err)
		_, logs, err := step.Step(context.Background(), state, b)
		require.NoError(t, err)
		loss, err := logs.Float("loss")
		require.NoError(t, err)
		losses = append(losses, loss)
	}
	return losses
}

func take(t require.TestingT, state *managed.State) loop.Snapshot {
	s, err := state.Snapshot(context.Background())
	require.NoError(t, err)
	return s
}

func TestSnapshot_goesOnWithTheSameBits(t *testing.T) {
	for plugin, open := range plugintest.Platforms {
		t.Run(plugin, func(t *testing.T) {
			r := open(t)
			set := line(t, 64)
			step := stepper(t, managed.TrainStep(noisy))

			unbroken := newState(t, r, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
			before := steps(t, step, unbroken, set, 0, 3)
			after := steps(t, step, unbroken, set, 3, 8)

			state := newState(t, r, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
			require.Equal(t, before, steps(t, step, state, set, 0, 3))
			atThree := bits(t, state)
			kept := take(t, state)
			for pass := range 3 { // a snapshot can be restored any number of times
				require.Equal(t, after, steps(t, step, state, set, 3, 8), "pass %d", pass)
				require.Equal(t, bits(t, unbroken), bits(t, state))
				require.NotEqual(t, atThree["/#rngState"], bits(t, state)["/#rngState"])
				require.NoError(t, kept.Restore(t.Context()))
				require.Equal(t, atThree, bits(t, state))
			}
			require.NoError(t, kept.Close())
			require.Equal(t, after, steps(t, step, state, set, 3, 8), "what was restored does not need the snapshot")
			require.Len(t, step.StableHLO(), 2, "one program for each state: to restore compiles nothing")
			t.Logf("3 steps, snapshot, 4 times 5 steps: %d values of the state, 0 differing bits", len(atThree))
		})
	}
}

// Whatever was done since, a restored state is the one that the snapshot was taken of.
func TestSnapshot_law(t *testing.T) {
	r := plugintest.CPU(t)
	set := line(t, 64)
	step := stepper(t, managed.TrainStep(noisy))
	state := newState(t, r, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	steps(t, step, state, set, 0, 1)
	type kept struct {
		snapshot loop.Snapshot
		values   map[string][]byte
		followed []float64
	}
	restored := 0
	rapid.Check(t, func(t *rapid.T) {
		var all []kept
		for range rapid.IntRange(1, 8).Draw(t, "actions") {
			switch rapid.SampledFrom([]string{"steps", "keep", "restore", "restore", "rate"}).Draw(t, "action") {
			case "steps":
				steps(t, step, state, set, 0, rapid.IntRange(1, 4).Draw(t, "n"))
			case "rate":
				require.NoError(t, state.SetLearningRate(rapid.Float64Range(0.001, 0.1).Draw(t, "rate")))
			case "keep":
				k := kept{snapshot: take(t, state), values: bits(t, state)}
				k.followed = steps(t, step, state, set, 0, 2)
				all = append(all, k)
			case "restore":
				if len(all) == 0 {
					continue
				}
				k := all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
				require.NoError(t, k.snapshot.Restore(context.Background()))
				require.Equal(t, k.values, bits(t, state))
				require.Equal(t, k.followed, steps(t, step, state, set, 0, 2))
				restored++
			}
		}
		for _, k := range all {
			require.NoError(t, k.snapshot.Close())
		}
	})
	require.Positive(t, restored)
	t.Logf("%d states restored, 0 differing bits", restored)
}

func TestSnapshot_newerVariables(t *testing.T) {
	r := plugintest.CPU(t)
	state := newState(t, r, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	train, test := managed.TrainStep(regression), managed.TestStep(regression)
	defer func() { require.NoError(t, errors.Join(train.Close(), test.Close())) }()
	batch := first(t, line(t, 16).Batches(16))

	nothing := take(t, state)
	require.NoError(t, nothing.Restore(t.Context()), "a state without values is the same still")
	_, _, err := test.Step(t.Context(), state, batch)
	require.NoError(t, err)
	initial := bits(t, state)
	require.ErrorContains(t, nothing.Restore(t.Context()), "the snapshot is of a state without values, before its first step: make a new state")
	require.Equal(t, initial, bits(t, state))

	untrained := take(t, state)
	_, _, err = train.Step(t.Context(), state, batch)
	require.NoError(t, err)
	after := bits(t, state)
	require.NoError(t, untrained.Restore(t.Context()))
	require.Equal(t, initial, bits(t, state))
	_, _, err = train.Step(t.Context(), state, batch)
	require.NoError(t, err)
	require.Equal(t, after, bits(t, state))

	trained := take(t, state)
	_, _, err = test.Step(t.Context(), state, batch)
	require.NoError(t, err)
	require.NoError(t, trained.Restore(t.Context()), "a step that finds its variables brings none")
}

func TestSnapshot_closedAndCancelled(t *testing.T) {
	r := plugintest.CPU(t)
	state, err := managed.New(strategies.Jit(r), managed.WithOptimizer(sgd()))
	require.NoError(t, err)
	step := managed.TrainStep(regression)
	defer func() { require.NoError(t, step.Close()) }()
	steps(t, step, state, line(t, 16), 0, 1)
	before := bits(t, state)

	why := errors.New("why")
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err = state.Snapshot(cancelled)
	require.ErrorIs(t, err, why)
	kept, other := take(t, state), take(t, state)
	require.ErrorIs(t, kept.Restore(cancelled), why)
	require.Equal(t, before, bits(t, state))

	require.NoError(t, errors.Join(kept.Close(), kept.Close()))
	err = kept.Restore(t.Context())
	require.ErrorIs(t, err, managed.ErrClosed)
	require.EqualError(t, err, "managed: restore: the snapshot: used after Close")

	require.NoError(t, state.Close())
	err = other.Restore(t.Context())
	require.ErrorIs(t, err, managed.ErrClosed)
	require.EqualError(t, err, "managed: restore: the state: used after Close")
	require.NoError(t, other.Close(), "the state may be closed first")
	_, err = state.Snapshot(t.Context())
	require.EqualError(t, err, "managed: snapshot: the state: used after Close")
}

// breaking is a strategy that fails on request.
type breaking struct {
	strategies.Strategy
	runs, puts int // how many more may succeed; below zero, all
}

var errBroken = errors.New("broken on purpose")

func (s *breaking) Put(name string, t *tensors.Tensor) (compute.Buffer, error) {
	if s.puts == 0 {
		return nil, errBroken
	}
	s.puts--
	b, err := s.Strategy.Put(name, t)
	t.FinalizeLocal() // the tensor is used up, as a strategy may do with what it is given
	return b, err
}

func (s *breaking) Compile(step strategies.Step) (strategies.Program, error) {
	p, err := s.Strategy.Compile(step)
	return &breakingProgram{p, s}, err
}

type breakingProgram struct {
	strategies.Program
	on *breaking
}

// Start loses the state as a device does that fails in the middle of a step: its memory is freed.
func (p *breakingProgram) Start(state []compute.Buffer, batches []data.Batch) (changed, outputs []compute.Buffer, running strategies.Running, err error) {
	if p.on.runs == 0 {
		return nil, nil, nil, errors.Join(fmt.Errorf("%w: %w", strategies.ErrStateLost, errBroken), p.on.Free(state...))
	}
	p.on.runs--
	return p.Program.Start(state, batches)
}

// F17: after a failure that takes the state with it, a snapshot brings it back.
func TestF17_aSnapshotHealsALostState(t *testing.T) {
	on := &breaking{Strategy: strategies.Jit(plugintest.CPU(t)), runs: -1, puts: -1}
	set := line(t, 64)
	step := stepper(t, managed.TrainStep(noisy))
	state, err := managed.New(on, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	steps(t, step, state, set, 0, 3)
	kept, before := take(t, state), bits(t, state)
	want := steps(t, step, state, set, 3, 8)

	const failures = 20
	for k := range failures {
		require.NoError(t, kept.Restore(t.Context()))
		require.Equal(t, want[:k%5], append([]float64{}, steps(t, step, state, set, 3, 3+k%5)...))
		on.runs = 0
		_, _, err = step.Step(t.Context(), state, first(t, set.Batches(16)))
		require.ErrorIs(t, err, strategies.ErrStateLost)
		require.ErrorIs(t, err, errBroken)
		on.runs = -1
		for range 2 {
			_, _, err = step.Step(t.Context(), state, first(t, set.Batches(16)))
			require.ErrorIs(t, err, strategies.ErrStateLost, "no step works on what is lost")
		}
		_, err = state.Snapshot(t.Context())
		require.ErrorIs(t, err, strategies.ErrStateLost)
		_, err = state.LearningRate()
		require.ErrorIs(t, err, strategies.ErrStateLost)
		require.ErrorIs(t, state.SetLearningRate(0.1), strategies.ErrStateLost)
	}
	require.NoError(t, kept.Restore(t.Context()))
	require.Equal(t, before, bits(t, state))
	require.Equal(t, want, steps(t, step, state, set, 3, 8))
	require.NoError(t, kept.Close())
	t.Logf("F17: %d of %d lost states restored to the bit", failures, failures)
}

// A restore that fails at any of its values leaves the state as it was, and nothing on the device.
func TestSnapshot_aFailedRestoreChangesNothing(t *testing.T) {
	r := plugintest.CPU(t)
	on := &breaking{Strategy: strategies.Jit(r), runs: -1, puts: -1}
	state, err := managed.New(on, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	step := stepper(t, managed.TrainStep(noisy))
	steps(t, step, state, line(t, 64), 0, 2)
	kept := take(t, state)
	defer func() { require.NoError(t, kept.Close()) }()
	steps(t, step, state, line(t, 64), 2, 4)
	now := bits(t, state)
	alive := pjrt.Live().Buffers
	for k := range state.Names() {
		on.puts = k
		err := kept.Restore(t.Context())
		require.ErrorIs(t, err, errBroken)
		require.ErrorContains(t, err, "managed: restore: "+state.Names()[k]+": ")
		require.Equal(t, now, bits(t, state))
		require.Equal(t, alive, pjrt.Live().Buffers)
	}
	on.puts = 0
	rate, err := state.LearningRate()
	require.NoError(t, err)
	require.ErrorIs(t, state.SetLearningRate(0.5), errBroken)
	same, err := state.LearningRate()
	require.NoError(t, err)
	require.Equal(t, rate, same)
	on.puts = -1
	require.NoError(t, kept.Restore(t.Context()))
	require.Equal(t, alive, pjrt.Live().Buffers)
	t.Logf("%d places to fail at, 0 changed values, 0 buffers left", len(state.Names()))
}

func TestF18_snapshotsLeaveNoBuffer(t *testing.T) {
	r := plugintest.CPU(t)
	state := newState(t, r, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	step := stepper(t, managed.TrainStep(noisy))
	set := line(t, 64)
	steps(t, step, state, set, 0, 2)
	before := pjrt.Live().Buffers
	const n = 200
	for range n {
		kept := take(t, state)
		require.Equal(t, before, pjrt.Live().Buffers, "a snapshot is on the host")
		steps(t, step, state, set, 0, 1)
		require.NoError(t, kept.Restore(t.Context()))
		require.NoError(t, state.SetLearningRate(0.01))
		require.NoError(t, kept.Close())
	}
	require.Equal(t, before, pjrt.Live().Buffers)
	t.Logf("F18: %d snapshots and as many restores, %d buffers left", n, pjrt.Live().Buffers-before)
}

func ExampleState_Snapshot() {
	ctx := context.Background()
	runtime, err := xla.Open(ctx, xla.CPU)
	if err != nil {
		log.Fatal(err)
	}
	defer runtime.Close()
	set, err := data.New(data.X([]float32{-1, 0, 1, 2}, 4, 1), data.Y([]float32{-2, 1, 4, 7}, 4, 1))
	if err != nil {
		log.Fatal(err)
	}
	state, err := managed.New(strategies.Jit(runtime), managed.WithOptimizer(sgd()))
	if err != nil {
		log.Fatal(err)
	}
	defer state.Close()
	step := managed.TrainStep(regression)
	defer step.Close()
	train := func(steps int64) (loss float64) {
		result, err := loop.New(loop.On(loop.EachStep, step)).Run(ctx, state, set.Batches(4), loop.Until(loop.Steps(steps)))
		if err != nil {
			log.Fatal(err)
		}
		loss, err = result.History.Last("loss")
		if err != nil {
			log.Fatal(err)
		}
		return loss
	}
	train(20)
	kept, err := state.Snapshot(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer kept.Close()
	once := train(5)
	if err := kept.Restore(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("the same again:", train(5) == once)
	// Output:
	// the same again: true
}
