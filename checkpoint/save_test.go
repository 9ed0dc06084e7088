package checkpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

func TestSaveOfAStepThatIsThere(t *testing.T) {
	m := saved(t, 1, 2)
	f := openMem(t, m, checkpoint.Options{})
	err := f.Save(t.Context(), 2, content(7))
	require.ErrorIs(t, err, fs.ErrExist)
	require.ErrorContains(t, err, "set Overwrite")
	require.NoError(t, f.Close())

	f = openMem(t, m, checkpoint.Options{Overwrite: true})
	require.NoError(t, f.Save(t.Context(), 2, content(7)))
	require.NoError(t, f.Save(t.Context(), 2, content(8)))
	names, err := m.ReadDir(".")
	require.NoError(t, err)
	require.Equal(t, []string{"LOCK", dir(1), dir(2) + ".3"}, names)
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	require.Equal(t, 8, version(t, c))
	require.NoError(t, f.Close())

	write(t, m, dir(2)+".3/COMMIT", nil)
	f = openMem(t, m, checkpoint.Options{})
	require.NoError(t, f.Save(t.Context(), 2, content(9)), "what is there is damaged")
	c, err = f.Newest(t.Context())
	require.NoError(t, err)
	require.Equal(t, 9, version(t, c))
	names, err = m.ReadDir(".")
	require.NoError(t, err)
	require.Equal(t, []string{"LOCK", dir(1), dir(2) + ".3", dir(2) + ".4"}, names, "and it stays")
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	keep := func(r ...checkpoint.Retention) checkpoint.Options { return checkpoint.Options{Keep: r} }
	for _, c := range []struct {
		name, dir string
		options   checkpoint.Options
		want      string
	}{
		{"no name", "", checkpoint.Options{}, "no name"},
		{"a name for a shell", "~/run", checkpoint.Options{}, "only a shell expands"},
		{"a file", file, checkpoint.Options{}, "not a directory: it is a file, expected a folder of checkpoints"},
		{"a file to read", file, checkpoint.Options{ReadOnly: true}, "not a directory: it is a file, expected a folder of checkpoints"},
		{"none to read", file + "s", checkpoint.Options{ReadOnly: true}, "no such file"},
		{"none kept", t.TempDir(), keep(checkpoint.Retention{Last: 2}, checkpoint.Retention{Last: -1}), "keep 2 of 2: {Last: -1}: the numbers must not be negative"},
		{"no best", t.TempDir(), keep(checkpoint.Retention{Best: -1, Metric: "acc"}), `{Best: -1, Metric: "acc"}`},
		{"best of nothing", t.TempDir(), keep(checkpoint.Retention{Best: 1, Mode: loop.Lowest}), "the metric has no name"},
		{"a metric that is not counted", t.TempDir(), keep(checkpoint.Retention{Last: 1, Metric: "loss"}), "Metric or Mode is set, but not Best"},
		{"a metric of an unknown kind", t.TempDir(), keep(checkpoint.Retention{Best: 1, Metric: "energy"}), "set Mode to loop.Lowest or loop.Highest"},
		{"an empty retention", t.TempDir(), keep(checkpoint.Retention{}), "without content"},
		{"no stretch", t.TempDir(), keep(checkpoint.Retention{EverySteps: -1}), "EverySteps: -1"},
		{"no time", t.TempDir(), keep(checkpoint.Retention{EveryTime: -1}), "EveryTime: -1ns"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := checkpoint.Open(c.dir, c.options)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "checkpoint: open ")
		})
	}
	_, err := os.Stat("~")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestSaveAndLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "run")
	f, err := checkpoint.Open(dir, checkpoint.Options{Log: quiet})
	require.NoError(t, err)
	_, err = f.Newest(t.Context())
	require.ErrorIs(t, err, checkpoint.ErrNone)
	save(t, f, 20, 3, math.MaxInt64, 0)
	require.Equal(t, []checkpoint.Step{0, 3, 20, math.MaxInt64}, steps(t, f))
	for _, s := range []checkpoint.Step{0, 3, 20} {
		c, err := f.Load(t.Context(), s)
		require.NoError(t, err)
		require.EqualValues(t, s, version(t, c))
		require.Equal(t, s, c.Step)
		require.NoError(t, f.Verify(t.Context(), s))
	}
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, math.MaxInt64, c.Step)
	_, err = f.Load(t.Context(), 4)
	require.ErrorIs(t, err, checkpoint.ErrNoStep)
	require.ErrorIs(t, f.Verify(t.Context(), 4), checkpoint.ErrNoStep)
	require.Equal(t, []string{"none", "position"}, c.Sections())
	require.ErrorIs(t, c.Section("loop", new(int)), checkpoint.ErrNoSection)
	require.ErrorContains(t, c.Section("position", new(struct{ Version int })), `unknown field "Samples"`)
	var anything any
	require.NoError(t, c.Section("position", &anything))
	require.Equal(t, json.Number("1152921504606846976"), anything.(map[string]any)["Samples"])
	require.NoError(t, f.Close())
	require.NoError(t, f.Close(), "closed twice")
}

func TestSaveEndsWithItsContext(t *testing.T) {
	m := saved(t, 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	c := content(2)
	c.Tensors = append(c.Tensors, checkpoint.Tensor{Name: "z", DType: safetensors.U8, Dims: []int{1 << 30}, Write: func(w io.Writer) error {
		for {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return err
			}
			cancel(cause)
		}
	}})
	f := openMem(t, m, checkpoint.Options{})
	require.ErrorIs(t, f.Save(ctx, 2, c), cause)
	require.Empty(t, leftovers(t, m))
	require.Equal(t, []checkpoint.Step{1}, steps(t, f))
	_, err := f.Newest(ctx)
	require.ErrorIs(t, err, cause)
}

// S52: an observer hears of each write with its time and error, also of those in the background.
func TestSaved_isCalledForEachWrite(t *testing.T) {
	var got []string
	var mu sync.Mutex
	options := checkpoint.Options{Saved: func(step checkpoint.Step, took time.Duration, err error) {
		mu.Lock()
		defer mu.Unlock()
		require.GreaterOrEqual(t, took, time.Duration(0))
		got = append(got, fmt.Sprint(step, errors.Is(err, syscall.ENOSPC)))
		if step == 4 {
			panic("bad")
		}
	}}
	full := vfs.Fail(&vfs.Mem{}, vfs.Rule{Op: vfs.OpCreate, Name: "*/state.safetensors", N: 2, Err: syscall.ENOSPC})
	f := openMem(t, full, options)
	require.NoError(t, f.Save(t.Context(), 1, content(1)))
	a := f.Async()
	require.NoError(t, a.Save(t.Context(), 2, content(2)))
	require.ErrorIs(t, a.Wait(t.Context()), syscall.ENOSPC)
	require.NoError(t, f.Save(t.Context(), 3, content(3)))
	require.ErrorContains(t, f.Save(t.Context(), 4, content(4)), "option Saved: panic: bad")
	require.Equal(t, []string{"1 false", "2 true", "3 false", "4 false"}, got)
}
