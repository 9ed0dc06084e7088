package strategytest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/dist/launch"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/internal/ranks"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

const (
	savedFolder = "LAZO_TEST_SAVED_FOLDER"
	savedUntil  = "LAZO_TEST_SAVED_UNTIL"
)

// fetched counts the sharded values fetched whole, and the bytes fetched for saving.
type fetched struct {
	strategies.Strategy
	whole, bytes int
}

func (f *fetched) Fetch(b compute.Buffer) (*tensors.Tensor, error) {
	if _, cut := f.Parts(b); cut {
		f.whole++
	}
	return f.Strategy.Fetch(b)
}

func (f *fetched) FetchInto(b compute.Buffer, memory []byte) error {
	f.bytes += len(memory)
	return f.Strategy.FetchInto(b, memory)
}

// Two ranks save sharded values, each its parts. Two ranks continue from them bit-identically to a run without a stop,
// and one process and four ranks restore the same bits. No rank fetches a whole value to save it.
func TestRanks_saveTheirParts(t *testing.T) {
	if ranks.Inside(t) {
		trainAndSave(t)
		return
	}
	devices, err := strategies.DataParallel(plugintest.Devices(t, 2), strategies.Parallel{})
	require.NoError(t, err)
	want, err := faultTraining(t, devices, func(int64) {})
	require.NoError(t, err)
	dir := t.TempDir()
	result := func(n, until int) string {
		said, err := ranks.Start(t, n, func(o *launch.Options) {
			o.Env = append(o.Env, savedFolder+"="+dir, savedUntil+"="+strconv.Itoa(until))
		})
		require.NoError(t, err, said)
		got, err := os.ReadFile(filepath.Join(dir, "result"))
		require.NoError(t, err)
		t.Log(said)
		return string(got)
	}
	saved := result(2, faultSteps/2)
	require.Equal(t, saved, result(4, faultSteps/2), "four ranks have the values of two")
	files, err := filepath.Glob(filepath.Join(dir, "run", fmt.Sprintf("step-%012d", faultSteps/2), "rank-*"))
	require.NoError(t, err)
	require.Len(t, files, 2)

	folder, err := checkpoint.Open(filepath.Join(dir, "run"), checkpoint.Options{ReadOnly: true})
	require.NoError(t, err)
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)), managed.WithOptimizer(optim.GoMLX(optimizer.Adam().LearningRate(0.01).Done())))
	require.NoError(t, err)
	c, err := folder.Newest(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, faultSteps/2, c.Step)
	require.NoError(t, state.Restore(t.Context(), c))
	step := managed.TrainStep(small)
	require.NoError(t, step.Prepare(t.Context(), state, waveBatch(t)))
	require.Equal(t, saved, bitsOf(t, state), "one process has the values of two ranks")
	require.NoError(t, errors.Join(step.Close(), state.Close(), folder.Close()))

	require.Equal(t, want, result(2, faultSteps), "they go on with the bits of two devices that never stopped")
}

// waveBatch is one of those that faultTraining trains with.
func waveBatch(t *testing.T) data.Batch {
	for b, err := range wave(t, 128).Batches(32).All() {
		require.NoError(t, err)
		return b
	}
	return data.Batch{}
}

func bitsOf(t *testing.T, state *managed.State) (text string) {
	for _, name := range state.Names() {
		v, err := state.Value(name)
		require.NoError(t, err)
		text += fmt.Sprintln(name, numbers(t, v))
	}
	return text
}

// trainAndSave is the program of a rank: it continues from the saved checkpoint.
func trainAndSave(t *testing.T) {
	dir := os.Getenv(savedFolder)
	until, err := strconv.Atoi(os.Getenv(savedUntil))
	require.NoError(t, err)
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	strategy, err := strategies.DataParallel(plugintest.CPU(t, xla.Across(job)), strategies.Parallel{Shard: strategies.FullyShard(job.Size(), 2)})
	require.NoError(t, err)
	counts := &fetched{Strategy: strategy}
	state, err := managed.New(counts, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().LearningRate(0.01).Done())))
	require.NoError(t, err)
	step := managed.TrainStep(small)
	begin := int64(0)
	resumed := loop.Prepare("resumed", func(ctx context.Context, from loop.Beginning) (loop.Option, error) {
		begin = from.From.Steps
		err := step.Prepare(ctx, state, waveBatch(t))
		counts.whole = 0
		return nil, err
	})
	_, err = loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, wave(t, 128).Batches(32, data.Shuffle(3)), loop.Until(loop.Steps(until)),
		checkpoint.Resume(filepath.Join(dir, "run"), checkpoint.Options{When: loop.AtEnd, ReadBack: true}), resumed)
	require.NoError(t, err)
	if begin < int64(until) {
		require.Zero(t, counts.whole, "no value is fetched whole to be saved")
		own, all := 0, 0
		for _, name := range state.Names() {
			v, err := state.Value(name)
			require.NoError(t, err)
			size := int(v.Shape().ByteSize())
			all += size
			if split := strategies.FullyShard(job.Size(), 2)(name, v.Shape()); split != nil {
				own += size / job.Size()
			} else if job.Rank() == 0 {
				own += size
			}
		}
		require.Equal(t, own, counts.bytes, "rank %d: its parts alone", job.Rank())
		fmt.Fprintf(os.Stderr, "rank %d fetched %d of %d bytes to save them\n", job.Rank(), counts.bytes, all)
	}
	text := bitsOf(t, state)
	if job.Rank() == 0 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "result"), []byte(text), 0o600))
	}
	require.NoError(t, errors.Join(step.Close(), state.Close(), job.Close()))
}
