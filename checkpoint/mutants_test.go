package checkpoint_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/storetest"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// What mutants found untested, behaviour by behaviour.

var errStore = errors.New("the service is away")

// troubled is a store in memory with trouble.
type troubled struct {
	storetest.Memory
	garbled      string // the end of keys whose objects lose a bit on their way
	keys, delete error
}

func (s *troubled) Put(ctx context.Context, key string, write func(io.Writer) error) error {
	return s.Memory.Put(ctx, key, func(w io.Writer) error {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return err
		}
		if s.garbled != "" && strings.HasSuffix(key, s.garbled) {
			b.Bytes()[b.Len()-1] ^= 1
		}
		_, err := w.Write(b.Bytes())
		return err
	})
}

func (s *troubled) Keys(ctx context.Context) ([]string, error) {
	if s.keys != nil {
		return nil, s.keys
	}
	return s.Memory.Keys(ctx)
}

func (s *troubled) Delete(ctx context.Context, key string) error {
	if s.delete != nil {
		return s.delete
	}
	return s.Memory.Delete(ctx, key)
}

func openTroubled(t *testing.T, s *troubled) *checkpoint.Folder {
	options := checkpoint.Options{Log: quiet, Keep: []checkpoint.Retention{checkpoint.Last(1)}, ReadBack: checkpoint.ReadBackEach}
	f, err := checkpoint.OpenStore(t.Context(), s, "store", options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// What a store garbles is found when it is read back, before it is a checkpoint; the older one stays.
func TestStore_readsBack(t *testing.T) {
	s := &troubled{}
	f := openTroubled(t, s)
	require.NoError(t, f.Save(t.Context(), 1, content(1)))
	s.garbled = "state.safetensors"
	require.ErrorContains(t, f.Save(t.Context(), 2, content(2)), "read back: ")
	require.Equal(t, []checkpoint.Step{1}, steps(t, f))
}

// A store that cannot be listed is not one without checkpoints, from which a run would begin anew.
func TestStore_thatCannotBeListed(t *testing.T) {
	s := &troubled{}
	f := openTroubled(t, s)
	require.NoError(t, f.Save(t.Context(), 1, content(1)))
	s.keys = errStore
	_, err := f.List(t.Context())
	require.ErrorIs(t, err, errStore)
	_, err = checkpoint.Resume(t.Context(), f, &counter{})
	require.ErrorIs(t, err, errStore)
	require.NotErrorIs(t, err, checkpoint.ErrNone)
	s.keys = nil
}

// What cannot be deleted is told.
func TestStore_thatDeletesNothing(t *testing.T) {
	s := &troubled{}
	f := openTroubled(t, s)
	require.NoError(t, f.Save(t.Context(), 1, content(1)))
	s.delete = errStore
	err := f.Save(t.Context(), 2, content(2))
	require.ErrorIs(t, err, checkpoint.ErrNotPruned)
	require.ErrorIs(t, err, errStore)
	s.delete = nil
}

// named is a state with a section of a name, and another of the run's beside it.
type named struct{ section string }

func (n named) Content(context.Context) (checkpoint.Content, error) {
	return checkpoint.Content{Sections: map[string]any{n.section: 1}}, nil
}

// Two of one name are an error and no loss of one of them.
func TestSave_sectionsOfOneName(t *testing.T) {
	for name, also := range map[string]checkpoint.SaveOption{
		"loop": nil, "versions": nil, "own": checkpoint.Also("own", func() (any, error) { return 2, nil }),
	} {
		f := openTroubled(t, &troubled{})
		options := []checkpoint.SaveOption{}
		if also != nil {
			options = append(options, also)
		}
		l := loop.New(loop.OnFunc(loop.EachStep, func(_ context.Context, s named, _ int64) (named, loop.Logs, error) { return s, loop.Logs{}, nil }))
		_, err := l.Run(t.Context(), named{name}, numbered(0), loop.Until(loop.Steps(3)), checkpoint.Save(f, loop.EachStep, options...))
		require.ErrorContains(t, err, "there is a section", name)
	}
}

// The bits of a NaN are written with a sign before them, and nothing else is taken for one.
func TestFloat_textsThatAreNone(t *testing.T) {
	for _, text := range []string{`"NaN:"`, `"NaN:zz"`, `"7ff8000000000001"`, `"NaN:3ff0000000000000"`, `"inf"`} {
		var x checkpoint.Float
		require.Error(t, json.Unmarshal([]byte(text), &x), text)
	}
	var x checkpoint.Float
	require.NoError(t, json.Unmarshal([]byte(`"NaN:7ff8000000000001"`), &x))
}

// A run that goes on reads what it resumes from, and nothing older: a folder may hold many large checkpoints.
func TestSave_readsNothingOlder(t *testing.T) {
	m, keep := &vfs.Mem{}, []checkpoint.Retention{checkpoint.Last(5)}
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
