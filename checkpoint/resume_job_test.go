package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/shares"
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

// cut is a counter whose weight is sharded: each process has one number.
type cut struct {
	counter
	job    loop.Job
	writes *int // numbers written by this process; nil: not counted
}

func (c *cut) Job() loop.Job { return c.job }

func (c *cut) Content(ctx context.Context) (checkpoint.Content, error) {
	content, err := c.counter.Content(ctx)
	t := &content.Tensors[0]
	t.Dims, t.Data = []int{c.job.Size()}, nil
	t.Parts = []shares.Part{{Start: []int{c.job.Rank()}, Dims: []int{1}, Write: func(w io.Writer) error {
		if c.writes != nil {
			*c.writes++
		}
		_, err := w.Write(safetensors.Bytes([]float64{c.Weight + float64(c.job.Rank())}))
		return err
	}}}
	content.Share = shares.Share{Rank: c.job.Rank(), Of: c.job.Size()}
	return content, err
}

func (c *cut) Restore(ctx context.Context, from *checkpoint.Checkpoint) error {
	t, _ := from.Tensor("weight")
	values, err := safetensors.Values[float64](dataOf(t))
	for i := range values {
		if values[i] != values[0]+float64(i) {
			err = errors.Join(err, fmt.Errorf("number %d of %v is not that of rank %d", i, values, i))
		}
	}
	return errors.Join(err, c.counter.Restore(ctx, from))
}

func together(n int, f func(rank int, state *cut) error) []error {
	m := &meeting{size: n}
	m.met = sync.NewCond(&m.mu)
	errs := make([]error, n)
	var all sync.WaitGroup
	for rank := range n {
		all.Go(func() { errs[rank] = f(rank, &cut{counter: counter{Rate: 1}, job: oneOf{m, rank}}) })
	}
	all.Wait()
	return errs
}

// twoCut is a counter with two values that are cut. At one rank the copy of the first fails, or that of the state.
type twoCut struct {
	*cut
	fails   int
	content bool
}

func (c twoCut) Content(ctx context.Context) (checkpoint.Content, error) {
	content, err := c.cut.Content(ctx)
	first := content.Tensors[0]
	second := first
	first.Name, second.Name = "a", "b"
	if c.job.Rank() == c.fails {
		failed := errors.New("no memory for the copy")
		if c.content {
			return content, failed
		}
		part := first.Parts[0]
		first.Parts = []shares.Part{{Start: part.Start, Dims: part.Dims, Write: func(w io.Writer) error { return errors.Join(part.Write(w), failed) }}}
	}
	content.Tensors = []checkpoint.Tensor{second, first} // a save goes by names
	return content, err
}

// A save that fails in its copy at one rank ends the run everywhere, and no rank waits for the rest.
func TestJob_failsInTheCopy(t *testing.T) {
	for name, fails := range map[string]twoCut{"rank 0": {}, "rank 2": {fails: 2}, "the content of rank 2": {fails: 2, content: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := &vfs.Mem{}
				begin := time.Now()
				step := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, c twoCut, batch int64) (twoCut, loop.Logs, error) {
					return c, c.step(batch), nil
				})))
				for rank, err := range together(3, func(rank int, state *cut) error {
					f := openMem(t, disk, checkpoint.Options{ReadOnly: rank > 0})
					_, _, err := run(t.Context(), step, twoCut{state, fails.fails, fails.content}, loop.Until(loop.Steps(20)), f.Resume(checkpoint.Every(loop.Steps(5))))
					return err
				}) {
					require.ErrorContains(t, err, "no memory for the copy", rank)
					require.ErrorContains(t, err, "step 5: ", rank)
				}
				require.Less(t, time.Since(begin), time.Minute)
				_, err := openMem(t, disk, checkpoint.Options{ReadOnly: true}).Newest(t.Context())
				require.ErrorIs(t, err, checkpoint.ErrNone)
			})
		})
	}
}

var cutLoop = loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, c *cut, batch int64) (*cut, loop.Logs, error) {
	return c, c.step(batch), nil
})))

// Rank 0 writes, all take part in the fetches, and all go on from the checkpoint that rank 0 chooses, with the best
// state at the end.
func TestJob_savesAndResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &vfs.Mem{}
		options := checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1, Best: 1, Metric: "loss"}}}
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
				result, from, err := run(t.Context(), cutLoop, state, loop.Until(until), f.Resume(checkpoint.Every(loop.Steps(5))))
				if err == nil {
					require.Equal(t, until == 40, from.Steps == 17)
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
			_, _, err := run(t.Context(), cutLoop, state, loop.Until(loop.Steps(50)), f.Resume(checkpoint.Every(loop.Steps(5)), checkpoint.KeepBest("loss")))
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
		disk := &vfs.Mem{}
		full := vfs.Fail(disk, vfs.Rule{Op: vfs.OpWrite, N: 1, On: true, Err: syscall.ENOSPC})
		errs := together(3, func(rank int, state *cut) error {
			fs := vfs.FS(disk)
			if rank == 0 {
				fs = full
			}
			f := openMem(t, fs, checkpoint.Options{ReadOnly: rank > 0})
			_, _, err := run(t.Context(), cutLoop, state, loop.Until(loop.Steps(200)), f.Resume(checkpoint.Every(loop.Steps(5))))
			return errors.Join(err, f.Close())
		})
		require.ErrorIs(t, errs[0], syscall.ENOSPC)
		for _, err := range errs[1:] {
			require.ErrorContains(t, err, "rank 0: ")
			require.ErrorContains(t, err, "no space left on device")
		}
	})
}

// A rank that cannot write into the folder, not even that its parts will not come, ends the run on all ranks soon,
// with or without tolerated failures. No rank waits for missing parts.
func TestJob_folderOfAnotherIsReadOnly(t *testing.T) {
	for _, tolerate := range []int{0, 3} {
		synctest.Test(t, func(t *testing.T) {
			disk := &vfs.Mem{}
			begin := time.Now()
			errs := together(3, func(rank int, state *cut) error {
				fs := vfs.FS(disk)
				if rank == 2 {
					fs = vfs.Hook(disk, func(c vfs.Call) error {
						if c.Op != vfs.OpOpen && c.Op != vfs.OpRead && c.Op != vfs.OpStat && c.Op != vfs.OpReadDir {
							return syscall.EROFS
						}
						return nil
					})
				}
				f := openMem(t, fs, checkpoint.Options{ReadOnly: rank > 0})
				slow := loop.Watch(loop.EachStep, func(context.Context, loop.Report) error { time.Sleep(time.Second); return nil })
				_, _, err := run(t.Context(), cutLoop, state, loop.Until(loop.Steps(12)), slow, f.Resume(checkpoint.Every(loop.Steps(5)), checkpoint.Options{Tolerate: tolerate}))
				return err
			})
			require.ErrorIs(t, errs[2], syscall.EROFS)
			for _, err := range errs[:2] {
				require.Error(t, err)
			}
			require.Less(t, time.Since(begin), time.Minute)
		})
	}
}

// With the one option, rank 0 makes the folder and writes, the others open it after it, and all give it back; if one
// cannot, none has it.
func TestJob_oneOption(t *testing.T) {
	dir := t.TempDir()
	weights := make([]float64, 3)
	try := func(name string, until loop.Steps) []error {
		return together(3, func(rank int, state *cut) error {
			_, _, err := run(t.Context(), cutLoop, state, checkpoint.Resume(filepath.Join(dir, name), checkpoint.Every(loop.Steps(5))), loop.Until(until))
			weights[rank] = state.Weight
			return err
		})
	}
	alone := &counter{Rate: 1}
	for i := range int64(30) {
		alone.step(i)
	}
	for _, until := range []loop.Steps{12, 30} {
		for _, err := range try("new/one", until) {
			require.NoError(t, err)
		}
	}
	require.Equal(t, []float64{alone.Weight, alone.Weight, alone.Weight}, weights)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	errs := try("file/in/it", 30)
	require.ErrorIs(t, errs[0], syscall.ENOTDIR)
	for _, err := range errs[1:] {
		require.ErrorContains(t, err, "rank 0 could not open")
	}
}

// More or fewer processes, or one alone, continue from the checkpoint of others.
func TestJob_ofOtherSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &vfs.Mem{}
		alone := &counter{Rate: 1}
		for i := range int64(60) {
			alone.step(i)
		}
		until := loop.Steps(0)
		for i, n := range []int{1, 2, 4, 3, 1} {
			until += 12
			states := make([]*cut, n)
			for rank, err := range together(n, func(rank int, state *cut) error {
				states[rank] = state
				if n == 1 {
					state.job = nil
				}
				f := openMem(t, disk, checkpoint.Options{ReadOnly: rank > 0, ReadBack: true})
				options := []loop.Option{loop.Until(until), f.Resume(checkpoint.Every(loop.Steps(5)))}
				var from loop.Elapsed
				var err error
				if n == 1 {
					_, from, err = run(t.Context(), counting(), &state.counter, options...)
				} else {
					_, from, err = run(t.Context(), cutLoop, state, options...)
				}
				require.EqualValues(t, int64(until)-12, from.Steps)
				return errors.Join(err, f.Close())
			}) {
				require.NoError(t, err, "rank %d of %d", rank, n)
			}
			for _, s := range states {
				require.Equal(t, math.Float64bits(states[0].Weight), math.Float64bits(s.Weight))
			}
			if i == 4 {
				require.Equal(t, math.Float64bits(alone.Weight), math.Float64bits(states[0].Weight))
			}
		}
	})
}

// While a checkpoint is written, another one is left out, in all processes; the last one is not.
func TestJob_slowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &vfs.Mem{}
		writes := make([]int, 3)
		for rank, err := range together(3, func(rank int, state *cut) error {
			state.writes = &writes[rank]
			slow := vfs.Hook(disk, func(c vfs.Call) error {
				if rank == 1 && c.Op == vfs.OpCreate {
					time.Sleep(12 * time.Second)
				}
				return nil
			})
			f := openMem(t, slow, checkpoint.Options{ReadOnly: rank > 0})
			slowly := loop.Watch(loop.EachStep, func(context.Context, loop.Report) error { time.Sleep(time.Second); return nil })
			_, _, err := run(t.Context(), cutLoop, state, loop.Until(loop.Steps(44)), slowly, f.Resume(checkpoint.Every(loop.Steps(5))))
			return errors.Join(err, f.Close())
		}) {
			require.NoError(t, err, "rank %d", rank)
		}
		f := openMem(t, disk, checkpoint.Options{ReadOnly: true})
		require.Equal(t, []checkpoint.Step{5, 20, 35, 44}, steps(t, f))
		require.Equal(t, []int{4, 4, 4}, writes, "each process copied its own numbers, of the steps that are there")
	})
}

// lateCut reads its number after the run.
type lateCut struct {
	*cut
	saved *checkpoint.Tensor
}

func (c lateCut) Restore(ctx context.Context, from *checkpoint.Checkpoint) error {
	*c.saved, _ = from.Tensor("weight")
	return c.cut.Restore(ctx, from)
}
