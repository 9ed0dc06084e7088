package checkpoint_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/vfs"
)

// slow is a disk where making a checkpoint waits for a go.
type slow struct {
	going         chan struct{}
	making, worst atomic.Int64
}

func (s *slow) before(c vfs.Call) error {
	switch {
	case c.Op == vfs.OpMkdir:
		s.worst.Store(max(s.worst.Load(), s.making.Add(1)))
		<-s.going
	case c.Op == vfs.OpRename && strings.HasPrefix(c.Name, ".tmp-"):
		s.making.Add(-1)
	}
	return nil
}

// Under a clock that moves only when all wait for it: the saves take no time at all.
func TestF38_diskSlowerThanTheInterval(t *testing.T) { synctest.Test(t, diskSlowerThanTheInterval) }

func diskSlowerThanTheInterval(t *testing.T) {
	m := &vfs.Mem{}
	disk := &slow{going: make(chan struct{})}
	f := openMem(t, vfs.Hook(m, disk.before), checkpoint.Options{})
	a := f.Async()
	var c checkpoint.Content
	const n = 50
	begin := time.Now()
	for i := 1; i <= n; i++ { // none of them waits for the disk, which does nothing
		c = content(i)
		require.NoError(t, a.Save(t.Context(), checkpoint.Step(i), c))
		for _, tensor := range c.Tensors {
			clear(tensor.Data) // the next step of the training
		}
	}
	require.Zero(t, time.Since(begin), "the saves waited")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, a.Wait(ctx), context.Canceled)
	close(disk.going)
	require.NoError(t, a.Wait(t.Context()))
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	require.ErrorIs(t, a.Save(t.Context(), n+1, content(1)), checkpoint.ErrClosed)
	require.EqualValues(t, 1, disk.worst.Load())
	got := steps(t, f)
	require.LessOrEqual(t, len(got), 2)
	require.EqualValues(t, n, got[len(got)-1])
	require.EqualValues(t, n-len(got), a.Replaced())
	last, err := f.Newest(t.Context())
	require.NoError(t, err)
	require.Equal(t, n, version(t, last))
	t.Logf("F38: %d saves while the disk stood still: at most %d written at once, %d replaced, the last one is on disk", n, disk.worst.Load(), a.Replaced())
}

func TestAsyncErrorsAreNotLost(t *testing.T) {
	m := &vfs.Mem{}
	rule := vfs.Rule{Op: vfs.OpCreate, Name: "*/state.safetensors", N: 2, Err: syscall.ENOSPC}
	f := openMem(t, vfs.Fail(m, rule), checkpoint.Options{})
	a := f.Async()
	require.NoError(t, a.Save(t.Context(), 1, content(1)))
	require.NoError(t, a.Wait(t.Context()))
	// The save may be over, and its error here, before Save looks for errors.
	synced := errors.Join(a.Save(t.Context(), 2, content(2)), a.Wait(t.Context()))
	var background *checkpoint.BackgroundError
	require.ErrorAs(t, synced, &background)
	require.EqualValues(t, 2, background.Step)
	require.ErrorIs(t, synced, syscall.ENOSPC)
	require.ErrorContains(t, synced, "checkpoint: save step 2 in folder, in the background: ")
	require.NoError(t, a.Check(), "each comes once")

	require.ErrorIs(t, errors.Join(a.Save(t.Context(), 1, content(1)), a.Wait(t.Context())), fs.ErrExist)
	require.NoError(t, a.Save(t.Context(), 3, content(3)))
	require.NoError(t, a.Close())
	require.Equal(t, []checkpoint.Step{1, 3}, steps(t, f))
}

func TestAsyncSaveGivesAnEarlierErrorAndSaves(t *testing.T) {
	m := saved(t, 1)
	f := openMem(t, m, checkpoint.Options{})
	a := f.Async()
	synctest.Test(t, func(t *testing.T) {
		first := a.Save(t.Context(), 1, content(1)) // has the error if the save is over already
		synctest.Wait()
		require.ErrorIs(t, errors.Join(first, a.Save(t.Context(), 2, content(2))), fs.ErrExist)
		synctest.Wait()
	})
	require.NoError(t, a.Close())
	require.Equal(t, []checkpoint.Step{1, 2}, steps(t, f))
}

func TestAsyncRefusesWhileATensorIsWritten(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	a := f.Async()
	endless := checkpoint.Tensor{Name: "w", DType: safetensors.U8, Dims: []int{10}, Write: func(w io.Writer) error {
		for {
			if _, err := w.Write(make([]byte, 7)); err != nil {
				return err
			}
		}
	}}
	require.ErrorIs(t, a.Save(t.Context(), 1, checkpoint.Content{Tensors: []checkpoint.Tensor{endless}}), safetensors.ErrLimit)

	ctx, cancel := context.WithCancel(t.Context())
	cancelled := checkpoint.Tensor{Name: "w", DType: safetensors.U8, Dims: []int{10}, Write: func(w io.Writer) error {
		cancel()
		_, err := w.Write(make([]byte, 10))
		return err
	}}
	require.ErrorIs(t, a.Save(ctx, 1, checkpoint.Content{Tensors: []checkpoint.Tensor{cancelled}}), context.Canceled)
	require.NoError(t, a.Close())
}

func TestAsyncFromManyGoroutines(t *testing.T) {
	m := &vfs.Mem{}
	f := openMem(t, m, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 3}}})
	a := f.Async()
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := range 20 {
				n := 1 + g + 4*i
				if err := a.Save(context.Background(), checkpoint.Step(n), content(n)); err != nil {
					t.Error(err)
				}
				if _, err := f.Newest(context.Background()); err != nil && !errors.Is(err, checkpoint.ErrNone) {
					t.Error(err)
				}
				if err := a.Check(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	require.NoError(t, a.Close())
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	version(t, c)
	require.NoError(t, f.Close())
}

func BenchmarkAsyncSave(b *testing.B) {
	f, err := checkpoint.Open(b.TempDir(), checkpoint.Options{Log: quiet, Keep: []checkpoint.Retention{{Last: 1}}})
	require.NoError(b, err)
	defer f.Close()
	a := f.Async()
	c := payload(1, 64<<20)
	b.SetBytes(64 << 20)
	for i := 0; b.Loop(); i++ {
		require.NoError(b, a.Save(b.Context(), checkpoint.Step(i), c))
	}
	require.NoError(b, a.Close())
}

func BenchmarkSave(b *testing.B) {
	for name, readBack := range map[string]bool{"each": true, "the first": false} {
		b.Run(name, func(b *testing.B) {
			options := checkpoint.Options{Log: quiet, ReadBack: readBack, Keep: []checkpoint.Retention{{Last: 1}}}
			f, err := checkpoint.Open(b.TempDir(), options)
			require.NoError(b, err)
			defer f.Close()
			c := payload(1, 64<<20)
			b.SetBytes(64 << 20)
			for i := 0; b.Loop(); i++ {
				require.NoError(b, f.Save(b.Context(), checkpoint.Step(i), c))
			}
		})
	}
}
