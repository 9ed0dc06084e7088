package checkpoint_test

import (
	"context"
	"errors"
	"math"
	"path"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/memstore"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

func TestF10_resumeFromAStore(t *testing.T) {
	const until = 200
	whole, _ := resumed(t, openStore(t, &memstore.Memory{}, checkpoint.Options{}), until)
	s := &memstore.Memory{}
	for _, at := range []loop.Steps{30, 77, 150, until} {
		f := openStore(t, s, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 2}}})
		result, _ := resumed(t, f, at)
		require.EqualValues(t, at, result.Elapsed.Steps)
		if at == until {
			require.Equal(t, math.Float64bits(whole.State.Weight), math.Float64bits(result.State.Weight))
			require.Equal(t, rows(t, whole.History), rows(t, result.History))
		}
	}
	t.Log("F10: 3 stops in 200 steps, saved into a store: 0 differing bits")
}

// A store that cannot be listed is not an empty one, with which a run would start from the beginning.
func TestStore_thatCannotBeListed(t *testing.T) {
	errStore, away := errors.New("the service is away"), false
	f := openStore(t, &memstore.Faulty{Store: &memstore.Memory{}, Before: func(c memstore.Call) error {
		if away && c.Op == memstore.OpKeys {
			return errStore
		}
		return nil
	}}, checkpoint.Options{})
	save(t, f, 1)
	away = true
	_, err := f.List(t.Context())
	require.ErrorIs(t, err, errStore)
	_, err = looked(f, &counter{})
	require.ErrorIs(t, err, errStore)
	require.NotErrorIs(t, err, checkpoint.ErrNone)
}

// named is a state with a section of a given name, in addition to the run's sections.
type named struct{ section string }

func (n named) Content(context.Context) (checkpoint.Content, error) {
	return checkpoint.Content{Sections: map[string]any{n.section: 1}}, nil
}

type restoring struct{ named }

func (restoring) Restore(context.Context, *checkpoint.Checkpoint) error { return nil }

// Two of one name are an error and no loss of one of them.
func TestResume_sectionsOfOneName(t *testing.T) {
	two := 2
	for name, also := range map[string]map[string]any{"loop": nil, "versions": nil, "own": {"own": &two}} {
		f := openStore(t, &memstore.Memory{}, checkpoint.Options{})
		l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s restoring, _ int64) (restoring, loop.Logs, error) {
			return s, loop.Logs{}, nil
		})))
		_, _, err := run(t.Context(), l, restoring{named{name}}, loop.Until(loop.Steps(3)), saves(f, loop.EachStep, checkpoint.Options{Also: also}))
		require.ErrorContains(t, err, "already exists", name)
	}
}

// A resumed run reads only its checkpoint, and no older one: a folder may hold many large checkpoints.
func TestResume_readsNothingOlder(t *testing.T) {
	m, keep := &vfs.Mem{}, []checkpoint.Retention{{Last: 5}}
	for _, until := range []loop.Steps{20, 40} {
		f := openMem(t, m, checkpoint.Options{Keep: keep})
		resumed(t, f, until)
		require.NoError(t, f.Close())
	}
	read := map[string]int{}
	var mu sync.Mutex
	f := openMem(t, vfs.Hook(m, func(c vfs.Call) error {
		if mu.Lock(); c.Op == vfs.OpRead && path.Base(c.Name) == "state.safetensors" {
			read[path.Dir(c.Name)]++
		}
		mu.Unlock()
		return nil
	}), checkpoint.Options{Keep: keep})
	require.Equal(t, []checkpoint.Step{20, 40}, steps(t, f))
	resumed(t, f, 60)
	require.NoError(t, f.Close())
	require.Positive(t, read[dir(40)])
	require.Zero(t, read[dir(20)])
}

// Two processes that save apart: where only one has saved the newest step, both go on from the newest that both have.
func TestB104_newestCommonStep(t *testing.T) {
	ctx := t.Context()
	one, two := &vfs.Mem{}, &vfs.Mem{}
	upTo := func(m *vfs.Mem, until loop.Steps) {
		f := openMem(t, m, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 3}}})
		resumed(t, f, until)
		require.NoError(t, f.Close())
	}
	for _, until := range []loop.Steps{10, 15} {
		upTo(one, until)
		upTo(two, until)
	}
	upTo(one, 18) // two was killed before

	for _, row := range []struct {
		name         string
		own, other   *vfs.Mem
		has, resumed int64
	}{{"one", one, two, 18, 15}, {"two", two, one, 15, 15}} {
		t.Run(row.name, func(t *testing.T) {
			own := openMem(t, row.own, checkpoint.Options{Overwrite: true})
			other := openMem(t, row.other, checkpoint.Options{ReadOnly: true})
			all := steps(t, own)
			require.EqualValues(t, row.has, all[len(all)-1])
			step, err := own.Common(ctx, other)
			require.NoError(t, err)
			_, from, err := run(ctx, counting(), &counter{}, loop.Until(loop.Steps(20)), saves(own, loop.Never, at(step)))
			require.Equal(t, row.resumed, from.Steps)
			require.NoError(t, err, "it saves over what the other process never had")
			require.NoError(t, own.Close())
		})
	}
	t.Log("B104: two processes, one saved step 18 alone: both go on from step 15")
}

// A run that saves after each step, on a disk that takes a hundred times as long as a step.
func TestF38_aRunDoesNotWaitForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, step, write = 200, 10 * time.Millisecond, time.Second
		slowly := func(c vfs.Call) error {
			if c.Op == vfs.OpMkdir {
				time.Sleep(write)
			}
			return nil
		}
		f := openMem(t, vfs.Hook(&vfs.Mem{}, slowly), checkpoint.Options{})
		var last time.Duration
		watch := loop.Watch(loop.EachStep, func(_ context.Context, r loop.Report) error {
			time.Sleep(step)
			last = r.Elapsed.Time
			return nil
		})
		begin := time.Now()
		_, _, err := run(t.Context(), counting(), &counter{}, loop.Until(loop.Steps(n)), watch, saves(f, loop.EachStep))
		require.NoError(t, err)
		require.Equal(t, (n-1)*step, last, "the steps, and nothing of the saves")
		require.LessOrEqual(t, time.Since(begin), n*step+3*write, "at the end the one being written and the last one")
		all := steps(t, f)
		require.EqualValues(t, n, all[len(all)-1])
		require.NoError(t, f.Close())
		t.Logf("F38: %d steps of %v with a save each on a disk that takes %v: the steps took %v more; %d on the disk, the last one among them", n, step, write, last-(n-1)*step, len(all))
	})
}
