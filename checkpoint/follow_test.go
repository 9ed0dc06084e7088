package checkpoint_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/memstore"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// slowly trains to a step, one step a minute, and saves each tenth.
func slowly(t T, f *checkpoint.Folder, until loop.Steps, options ...loop.Option) error {
	t.Helper()
	slow := loop.Watch(loop.EachStep, func(context.Context, loop.Report) error { time.Sleep(time.Minute); return nil })
	_, _, err := run(context.Background(), counting(), &counter{Rate: 1}, append(options, slow, loop.Until(until), f.Resume(checkpoint.Every(loop.Steps(10))))...)
	return err
}

// weightAt is the weight of a run after step steps.
func weightAt(step int64) float64 {
	c := &counter{Rate: 1}
	for i := range step {
		c.step(i)
	}
	return c.Weight
}

// A process that follows gets each checkpoint once, in order, also those that were there before, and ends when the run
// has: on a disk and in a store.
func TestFollow_asCheckpointsAppear(t *testing.T) {
	store, disk := &memstore.Memory{}, &vfs.Mem{}
	for name, open := range map[string]func(options checkpoint.Options) *checkpoint.Folder{
		"disk":  func(options checkpoint.Options) *checkpoint.Folder { return openMem(t, disk, options) },
		"store": func(options checkpoint.Options) *checkpoint.Folder { return openStore(t, store, options) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := open(checkpoint.Options{})
				require.NoError(t, slowly(t, f, 20, loop.Watch(loop.At(loop.Steps(20)), func(context.Context, loop.Report) error { return loop.ErrPause })))
				trained := make(chan error, 1)
				go func() { trained <- slowly(t, f, 45) }()
				var seen []int64
				state := &counter{}
				for at, err := range (checkpoint.Follow{Folder: open(checkpoint.Options{ReadOnly: true})}).Into(t.Context(), state) {
					require.NoError(t, err)
					require.Equal(t, weightAt(at.Steps), state.Weight)
					seen = append(seen, at.Steps)
				}
				require.Equal(t, []int64{10, 20, 30, 40, 45}, seen)
				require.NoError(t, <-trained)
			})
		})
	}
}

// Reasons that end a Follow, and others that do not.
func TestFollow_ends(t *testing.T) {
	for _, row := range []struct {
		name   string
		follow checkpoint.Follow
		want   string
		seen   []int64
	}{
		{"the end was marked", checkpoint.Follow{}, "", []int64{10, 20}},
		{"the newest alone", checkpoint.Follow{Newest: true}, "", []int64{20}},
		{"a function says so", checkpoint.Follow{Stop: func(context.Context) (bool, error) { return true, nil }}, "", []int64{10, 20}},
		{"a function fails", checkpoint.Follow{Stop: func(context.Context) (bool, error) { return false, errors.New("no") }}, "checkpoint: follow folder: check whether the training has ended: no", nil},
		{"nothing comes", checkpoint.Follow{Timeout: time.Hour, Stop: func(context.Context) (bool, error) { return false, nil }},
			"checkpoint: follow folder: no checkpoint came in 1h0m0s: context deadline exceeded", []int64{10, 20}},
		{"negative times", checkpoint.Follow{Poll: -1}, "Poll is -1ns, Timeout 0s: expected times that are not negative", nil},
		{"two folders", checkpoint.Follow{Dir: "x"}, "expected either Dir or Folder", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &vfs.Mem{}
				f := openMem(t, m, checkpoint.Options{})
				require.NoError(t, slowly(t, f, 20))
				row.follow.Folder = openMem(t, m, checkpoint.Options{ReadOnly: true})
				var seen []int64
				var failed error
				for at, err := range row.follow.Into(t.Context(), &counter{}) {
					if failed = err; err == nil {
						seen = append(seen, at.Steps)
					}
				}
				require.Equal(t, row.seen, seen)
				if row.want == "" {
					require.NoError(t, failed)
				} else {
					require.ErrorContains(t, failed, row.want)
				}
			})
		})
	}
	for at, err := range (checkpoint.Follow{}).Into(t.Context(), &counter{}) {
		require.Zero(t, at)
		require.ErrorContains(t, err, "expected either Dir or Folder")
	}
}

// The end is marked after a run that ended well: not after a failure, a cancel or a pause, and the next run removes it.
func TestResume_marksTheEnd(t *testing.T) {
	m := &vfs.Mem{}
	f := openMem(t, m, checkpoint.Options{})
	try := func(until loop.Steps, at loop.Steps, what error) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		_, _, _ = run(ctx, counting(), &counter{Rate: 1}, loop.Until(until), f.Resume(), loop.Watch(loop.At(at).AndAtEnd(), func(_ context.Context, r loop.Report) error {
			if r.Elapsed.Steps != int64(at) {
				return nil
			}
			if errors.Is(what, context.Canceled) {
				cancel(errHome)
				return nil
			}
			return what
		}))
	}
	mark := func() string {
		if names, err := m.ReadDir("."); err != nil || !slices.Contains(names, "END") {
			return ""
		}
		return string(read(t, m, "END"))
	}
	try(10, 10, nil)
	require.Equal(t, "until reached after 10 steps\n", mark())
	try(10, 10, nil)
	require.Equal(t, "until reached after 10 steps\n", mark(), "a run that makes no step")
	try(20, 15, errors.New("no"))
	require.Empty(t, mark())
	try(20, 15, context.Canceled)
	require.Empty(t, mark())
	try(30, 25, loop.ErrPause)
	require.Empty(t, mark())
	try(50, 40, loop.ErrStop)
	require.Contains(t, mark(), "stopped after 40 steps: loop: step 40: ")
	before := mark()
	try(50, 45, nil)
	require.Equal(t, before, mark(), "a run that stays ended")
}

// A folder that the training makes later, and a loop over the checkpoints that ends where its caller breaks.
func TestFollow_aFolderThatAppears(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	looks := 0
	follow := checkpoint.Follow{Dir: dir, Poll: time.Millisecond, Stop: func(context.Context) (bool, error) {
		if looks++; looks == 3 {
			_, _, err := run(t.Context(), counting(), &counter{Rate: 1}, loop.Until(loop.Steps(20)), checkpoint.Resume(dir))
			require.NoError(t, err)
		}
		return false, nil
	}}
	for at, err := range follow.Into(t.Context(), &counter{}) {
		require.NoError(t, err)
		require.EqualValues(t, 20, at.Steps)
		break
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errHome)
	for _, err := range (checkpoint.Follow{Dir: filepath.Join(dir, "never")}).Into(ctx, &counter{}) {
		require.ErrorIs(t, err, errHome)
	}
}

// A checkpoint that the training removes before it is restored is left out.
func TestFollow_removedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &vfs.Mem{}
		require.NoError(t, slowly(t, openMem(t, m, checkpoint.Options{}), 30))
		var seen []int64
		for at, err := range (checkpoint.Follow{Folder: openMem(t, m, checkpoint.Options{ReadOnly: true})}).Into(t.Context(), &counter{}) {
			require.NoError(t, err)
			if seen = append(seen, at.Steps); at.Steps == 10 {
				require.NoError(t, m.Rename(dir(20), "gone"))
			}
		}
		require.Equal(t, []int64{10, 30}, seen)
	})
}
