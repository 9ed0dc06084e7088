package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

// digest is a state that depends on every example of every batch, in their order.
type digest struct{ counter }

func (d *digest) take(b data.Batch) loop.Logs {
	for _, x := range b.Fields[0].Array.Flat.([]float32) {
		d.Weight = math.Sin(d.Weight*3 + float64(x))
	}
	var logs loop.Logs
	logs.Set(loop.Losses, "loss", d.Weight)
	return logs
}

// A program that is killed at random steps and started again unchanged, with the one option, equals the run that was
// never killed: the run itself begins its data at the checkpoint's position, in the same order, epoch and batch.
func TestS02_resumeIsOneOption(t *testing.T) {
	values := make([]float32, 100)
	for i := range values {
		values[i] = float32(i)
	}
	set, err := data.New(data.X(values, len(values), 1))
	require.NoError(t, err)
	batches := set.Batches(8, data.Shuffle(3), data.Kept) // 13 an epoch
	errKilled := errors.New("killed")
	for name, source := range map[string]loop.Source[data.Batch]{
		"a set":            batches,
		"a function":       loop.From(func(position int64) iter.Seq2[data.Batch, error] { return data.Prefetch(batches.From(position), 3) }),
		"a plain iterator": loop.Data[data.Batch](set.Batches(8, data.Kept).All()),
	} {
		t.Run(name, func(t *testing.T) {
			program := func(dir string, killedAt int64, log *slog.Logger) (loop.Result[*digest], error) {
				step := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, d *digest, b data.Batch) (*digest, loop.Logs, error) {
					return d, d.take(b), nil
				}))

				kill := loop.Watch(loop.EachStep, func(_ context.Context, r loop.Report) error {
					if r.Elapsed.Steps == killedAt {
						return errKilled
					}
					return nil
				})
				return loop.New(step).Run(t.Context(), new(digest), source, loop.Until(loop.Epochs(5)), kill,
					checkpoint.Resume(dir, checkpoint.Every(loop.Steps(4)), checkpoint.KeepBest("loss"), checkpoint.Options{Log: log}))
			}
			whole, err := program(filepath.Join(t.TempDir(), "whole"), math.MaxInt64, nil)
			require.NoError(t, err)
			require.EqualValues(t, 65, whole.Elapsed.Steps)
			require.EqualValues(t, 5, whole.Elapsed.Epochs)
			random := rand.New(rand.NewPCG(2, 2))
			for range 3 {
				dir := filepath.Join(t.TempDir(), "run")
				for at := int64(0); at < 60; {
					at = min(at+1+random.Int64N(30), 64)
					_, err := program(dir, at, nil)
					require.ErrorIs(t, err, errKilled)
				}
				var said bytes.Buffer
				result, err := program(dir, math.MaxInt64, slog.New(slog.NewTextHandler(&said, nil)))
				require.NoError(t, err)
				require.Equal(t, math.Float64bits(whole.State.Weight), math.Float64bits(result.State.Weight))
				require.Equal(t, rows(t, whole.History), rows(t, result.History))
				require.Equal(t, whole.Elapsed.Epochs, result.Elapsed.Epochs)
				require.Equal(t, name == "a plain iterator", bytes.Contains(said.Bytes(), []byte("the data cannot begin at a position")), said.String())
			}
		})
	}
	t.Log("S02: killed and resumed with the one option: 0 differing bits, rows or epochs, whatever the data is given as")
}

// Epochs go on where the checkpoint is, and one of before there were any has none.
func TestS06_epochsGoOn(t *testing.T) {
	dir := t.TempDir()
	five := loop.Data[int64](func(yield func(int64, error) bool) {
		for i := int64(0); i < 5 && yield(i, nil); i++ {
		}
	})
	step := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
		return c, c.step(batch), nil
	})))
	var epochs []int64
	for _, until := range []loop.Epochs{2, 3, 6} {
		result, err := step.Run(t.Context(), &counter{Rate: 1}, five, loop.Until(until), checkpoint.Resume(dir))
		require.NoError(t, err)
		require.EqualValues(t, until, result.Elapsed.Epochs)
		require.EqualValues(t, 5*until, result.Elapsed.Steps)
		epochs = epochs[:0]
		for at := range result.History.Rows() {
			require.Equal(t, at.Steps/5, at.Epochs, "the file of the earlier rows has their epochs")
			epochs = append(epochs, at.Epochs)
		}
		require.IsNonDecreasing(t, epochs)
		require.Len(t, epochs, int(5*until))
	}
}

// A rule by a metric alone does not remove the two newest checkpoints, so that if one is damaged the other is left.
func TestResume_keepsTheNewestBesidesTheBest(t *testing.T) {
	for _, row := range []struct {
		keep []checkpoint.Retention
		want []checkpoint.Step
	}{
		{nil, []checkpoint.Step{4, 6}},
		{[]checkpoint.Retention{{Best: 1, Metric: "loss"}}, []checkpoint.Step{2, 4, 6}},
		{[]checkpoint.Retention{{Last: 1}}, []checkpoint.Step{6}},
	} {
		t.Run(fmt.Sprint(row.keep), func(t *testing.T) {
			dir := t.TempDir()
			steps := func() (steps []checkpoint.Step) {
				folder, err := checkpoint.Open(dir, checkpoint.Options{ReadOnly: true})
				require.NoError(t, err)
				defer folder.Close()
				list, err := folder.List(t.Context())
				require.NoError(t, err)
				for _, info := range list {
					steps = append(steps, info.Step)
				}
				return steps
			}
			step := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
				saved := checkpoint.Step(batch - batch%2)
				for saved > 0 && !slices.Contains(steps(), saved) {
					runtime.Gosched()
				}
				var logs loop.Logs
				logs.Loss("loss", math.Abs(float64(batch-1)))
				return c, logs, nil
			}))

			six := loop.Data[int64](func(yield func(int64, error) bool) {
				for i := int64(0); i < 6 && yield(i, nil); i++ {
				}
			})
			_, err := loop.New(step).Run(t.Context(), &counter{Rate: 1}, six,
				checkpoint.Resume(dir, checkpoint.Every(loop.Steps(2)), checkpoint.Options{Keep: row.keep}))
			require.NoError(t, err)
			require.Equal(t, row.want, steps())
		})
	}
}
