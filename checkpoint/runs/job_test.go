package runs_test

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/runs"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// meeting is the job of goroutines in place of processes.
type meeting struct {
	mu            sync.Mutex
	met           *sync.Cond
	size, came, n int
	words, result []int64
	unequal       bool
}

type oneOf struct {
	*meeting
	rank int
}

func (o oneOf) Rank() int { return o.rank }
func (o oneOf) Size() int { return o.size }

func (o oneOf) Agree(words []int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.came == 0 {
		o.words = append([]int64(nil), words...)
	}
	o.unequal = o.unequal || len(words) != len(o.words)
	for i := range min(len(words), len(o.words)) {
		o.words[i] = max(o.words[i], words[i])
	}
	if o.came++; o.came == o.size {
		o.result, o.came = o.words, 0
		o.n++
		o.met.Broadcast()
	} else {
		for n := o.n; n == o.n; {
			o.met.Wait()
		}
	}
	if o.unequal {
		return errors.New("calls of different kinds met")
	}
	copy(words, o.result)
	return nil
}

// cut is a counter whose weight is fetched by all processes together.
type cut struct {
	counter
	job loop.Job
}

func (c *cut) Job() loop.Job { return c.job }

func (c *cut) Content(ctx context.Context) (checkpoint.Content, error) {
	content, err := c.counter.Content(ctx)
	data := content.Tensors[0].Data
	content.Tensors[0].Data = nil
	content.Tensors[0].Write = func(w io.Writer) error {
		if err := c.job.Agree(make([]int64, 5)); err != nil { // five words are a fetch
			return err
		}
		_, err := w.Write(data)
		return err
	}
	return content, err
}

func together(n int, f func(rank int, state *cut) error) []error {
	m := &meeting{size: n}
	m.met = sync.NewCond(&m.mu)
	errs := make([]error, n)
	var all sync.WaitGroup
	for rank := range n {
		all.Go(func() { errs[rank] = f(rank, &cut{counter{Rate: 1}, oneOf{m, rank}}) })
	}
	all.Wait()
	return errs
}

// twoCut is a counter with two values that all processes fetch together. At rank 0 the copy of the first fails.
type twoCut struct{ *cut }

func (c twoCut) Content(ctx context.Context) (checkpoint.Content, error) {
	content, err := c.cut.Content(ctx)
	first := content.Tensors[0]
	second := first
	first.Name, second.Name = "a", "b"
	if c.job.Rank() == 0 {
		write := first.Write
		first.Write = func(w io.Writer) error { return errors.Join(write(w), errors.New("no memory for the copy")) }
	}
	content.Tensors = []checkpoint.Tensor{second, first} // a save goes by names
	return content, err
}

// A save that fails in its copy at rank 0 ends the run everywhere: the others wait for no fetch.
func TestJob_failsInTheCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &vfs.Mem{}
		step := loop.New(loop.OnFunc(loop.EachStep, func(_ context.Context, c twoCut, batch int64) (twoCut, loop.Logs, error) {
			return c, c.step(batch), nil
		}))
		for rank, err := range together(3, func(rank int, state *cut) error {
			f := openMem(t, disk, checkpoint.Options{ReadOnly: rank > 0})
			_, err := step.Run(t.Context(), twoCut{state}, numbered(0), loop.Until(loop.Steps(20)), runs.Save(f, loop.Every(loop.Steps(5))))
			return err
		}) {
			require.ErrorContains(t, err, "no memory for the copy", rank)
			require.ErrorContains(t, err, "step 5: ", rank)
		}
	})
}

var cutLoop = loop.New(loop.OnFunc(loop.EachStep, func(_ context.Context, c *cut, batch int64) (*cut, loop.Logs, error) {
	return c, c.step(batch), nil
}))

// Rank 0 writes, all take part in the fetches, and all go on from the checkpoint that rank 0 chooses, with the best
// state at the end.
func TestJob_savesAndResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &vfs.Mem{}
		options := checkpoint.Options{Keep: []checkpoint.Retention{checkpoint.Last(1), checkpoint.Lowest(1, "loss")}}
		open := func(rank int) *checkpoint.Folder {
			options := options
			options.ReadOnly = rank > 0
			return openMem(t, disk, options)
		}
		alone := &counter{Rate: 1}
		for i := range int64(40) {
			alone.step(i)
		}
		for _, until := range []loop.Steps{17, 40} {
			states := make([]*cut, 3)
			for rank, err := range together(3, func(rank int, state *cut) error {
				f := open(rank)
				states[rank] = state
				start, err := runs.Resume(t.Context(), f, state)
				require.NoError(t, err)
				require.Equal(t, until == 40, start.Found)
				result, err := cutLoop.Run(t.Context(), state, numbered(start.Elapsed.Steps), start.Option(), loop.Until(until),
					runs.Save(f, loop.Every(loop.Steps(5))))
				if err == nil {
					require.EqualValues(t, until, result.Elapsed.Steps)
				}
				return errors.Join(err, f.Close())
			}) {
				require.NoError(t, err, "rank %d", rank)
			}
			if until == 40 {
				for _, s := range states {
					require.Equal(t, math.Float64bits(alone.Weight), math.Float64bits(s.Weight))
				}
			}
		}
		best := make([]float64, 3)
		for _, err := range together(3, func(rank int, state *cut) error {
			f := open(rank)
			start, err := runs.Resume(t.Context(), f, state)
			require.NoError(t, err)
			_, err = cutLoop.Run(t.Context(), state, numbered(start.Elapsed.Steps), start.Option(), loop.Until(loop.Steps(50)),
				runs.Save(f, loop.Every(loop.Steps(5))), runs.KeepBest(f, checkpoint.Lowest(1, "loss")))
			best[rank] = state.Weight
			return errors.Join(err, f.Close())
		}) {
			require.NoError(t, err)
		}
		require.Equal(t, best[0], best[1])
		require.Equal(t, best[0], best[2])
		require.Less(t, best[0], alone.Weight)
	})
}

// A disk that is full at rank 0 ends the run everywhere, with its error.
func TestJob_fullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := vfs.Fail(&vfs.Mem{}, vfs.Rule{Op: vfs.OpWrite, N: 1, On: true, Err: syscall.ENOSPC})
		errs := together(3, func(rank int, state *cut) error {
			f := openMem(t, full, checkpoint.Options{ReadOnly: rank > 0})
			_, err := cutLoop.Run(t.Context(), state, numbered(0), loop.Until(loop.Steps(200)), runs.Save(f, loop.Every(loop.Steps(5))))
			return errors.Join(err, f.Close())
		})
		require.ErrorIs(t, errs[0], syscall.ENOSPC)
		for _, err := range errs[1:] {
			var ranked *loop.RankError
			require.ErrorAs(t, err, &ranked)
			require.Zero(t, ranked.Rank)
			require.ErrorContains(t, err, "no space left on device")
		}
	})
}

// One that cannot restore, or finds another folder, is an error of all.
func TestJob_resumeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &vfs.Mem{}
		f := openMem(t, disk, checkpoint.Options{})
		_, err := counting().Run(t.Context(), &counter{Rate: 1}, numbered(0), loop.Until(loop.Steps(9)), runs.Save(f, loop.Every(loop.Steps(5))))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		errs := together(3, func(rank int, state *cut) error {
			own := disk
			if rank == 1 {
				own = &vfs.Mem{}
			}
			f := openMem(t, own, checkpoint.Options{ReadOnly: rank > 0})
			_, err := runs.Resume(t.Context(), f, state)
			return errors.Join(err, f.Close())
		})
		require.ErrorContains(t, errs[1], "the folder must be the same for all processes")
		require.ErrorContains(t, errs[0], "rank 1 could not restore the checkpoint")
		require.ErrorContains(t, errs[2], "rank 1 could not restore the checkpoint")
	})
}

// Rank 0 makes the folder and writes, the others open it behind it; where one cannot, none has it.
func TestOpen_ofAJob(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) []error {
		return together(3, func(rank int, state *cut) error {
			f, err := runs.Open(filepath.Join(dir, name), checkpoint.Options{}, state.Job())
			if err != nil {
				return err
			}
			return f.Close()
		})
	}
	for _, err := range open("new/one") {
		require.NoError(t, err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	errs := open("file/in/it")
	require.ErrorIs(t, errs[0], syscall.ENOTDIR)
	for _, err := range errs[1:] {
		require.ErrorContains(t, err, "rank 0 could not open")
	}
	alone, err := runs.Open(dir, checkpoint.Options{}, nil)
	require.NoError(t, err)
	require.NoError(t, alone.Close())
}
