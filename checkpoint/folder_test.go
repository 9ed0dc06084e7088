package checkpoint_test

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/loop"
)

// F39: every format that lazo ever wrote can be loaded, and a future one is refused by its number.
func TestF39_keptFormats(t *testing.T) {
	kept, later := filepath.Join("testdata", "format-1"), filepath.Join("testdata", "format-99")
	if _, err := os.Stat(kept); *writeFixtures && errors.Is(err, fs.ErrNotExist) {
		f, err := checkpoint.Open(kept, checkpoint.Options{})
		require.NoError(t, err)
		saveOnce(t, f, oldState(), loop.Elapsed{Steps: 7, Samples: 70}, []float64{0.25, math.NaN()})
		require.NoError(t, errors.Join(f.Close(), os.Remove(filepath.Join(kept, "LOCK"))))
		future(t, kept, later)
	}
	open := func(from string) *checkpoint.Folder {
		dir := filepath.Join(t.TempDir(), "copy")
		require.NoError(t, os.CopyFS(dir, os.DirFS(from)))
		f, err := checkpoint.Open(dir, checkpoint.Options{Log: quiet})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		return f
	}
	state := &valued{}
	result, err := looked(open(kept), state)
	require.NoError(t, err)
	require.EqualValues(t, 8, result.Elapsed.Steps)
	require.EqualValues(t, 71, result.Elapsed.Samples)
	want := oldState()
	require.ElementsMatch(t, want.tensors, state.tensors)
	require.Equal(t, want.metrics, state.metrics)
	require.Len(t, state.params, len(want.params))
	for name, x := range want.params {
		same(t, x, state.params[name])
	}
	last, err := result.History.Last("entry0")
	require.NoError(t, err)
	require.Equal(t, 0.25, last)

	_, err = looked(open(later), state)
	require.ErrorIs(t, err, checkpoint.ErrNewer)
	require.ErrorContains(t, err, "format 99, this lazo reads up to 2: written by a newer lazo; load it with that one")
	t.Log("F39: the kept checkpoint of format 1 is resumed with every bit; that of format 99 is refused by its number")
}

// A value that was left in its files can be read after the run has given the folder back.
func TestJob_readsAfterTheRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, c lateCut, batch int64) (lateCut, loop.Logs, error) {
		return c, c.step(batch), nil
	})))
	for i := range 2 {
		for rank, err := range together(3, func(rank int, state *cut) error {
			late := lateCut{state, new(checkpoint.Tensor)}
			_, _, err := run(t.Context(), l, late, loop.Until(loop.Steps(10)), checkpoint.Resume(dir))
			if i == 1 && err == nil {
				values, err := safetensors.Values[float64](dataOf(*late.saved))
				require.NoError(t, err)
				require.Equal(t, []float64{state.Weight, state.Weight + 1, state.Weight + 2}, values)
			}
			return err
		}) {
			require.NoError(t, err, "rank %d", rank)
		}
	}
	f, err := checkpoint.Open(dir, checkpoint.Options{})
	require.NoError(t, err, "the folder is free")
	require.NoError(t, f.Close())
}

func TestOpenRemovesLeftovers(t *testing.T) {
	m := saved(t, 1)
	for _, name := range []string{".tmp-0123456789abcdef", ".trash-0123456789abcdef", ".tmp-mine", ".trash", "step-1", "step-x"} {
		require.NoError(t, m.Mkdir(name))
		require.NoError(t, m.Mkdir(name+"/deep"))
		write(t, m, name+"/deep/file", nil)
	}
	write(t, m, ".tmp-0123456789abcdee", nil)
	f := openMem(t, m, checkpoint.Options{ReadOnly: true})
	require.Contains(t, leftovers(t, m), ".tmp-0123456789abcdef", "reading changes nothing")
	require.NoError(t, f.Close())
	f = openMem(t, m, checkpoint.Options{})
	require.Equal(t, []string{".tmp-mine", ".trash"}, leftovers(t, m), "what is not ours stays")
	require.Equal(t, []checkpoint.Step{1}, steps(t, f))
}

func TestFolderThatIsClosedOrReadOnly(t *testing.T) {
	m := saved(t, 1)
	f := openMem(t, m, checkpoint.Options{ReadOnly: true})
	require.ErrorIs(t, f.Save(t.Context(), 2, content(2)), checkpoint.ErrReadOnly)
	require.ErrorIs(t, f.Prune(t.Context()), checkpoint.ErrReadOnly)
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, version(t, c))
	require.NoError(t, f.Close())
	a := f.Async()
	require.NoError(t, a.Close())
	_, newest := f.Newest(t.Context())
	_, load := f.Load(t.Context(), 1)
	_, list := f.List(t.Context())
	for name, err := range map[string]error{
		"save": f.Save(t.Context(), 2, content(2)), "prune": f.Prune(t.Context()), "verify": f.Verify(t.Context(), 1),
		"newest": newest, "load": load, "list": list, "async": a.Save(t.Context(), 2, content(2)),
	} {
		require.ErrorIs(t, err, checkpoint.ErrClosed, name)
	}
}
