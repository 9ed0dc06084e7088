package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// Settings of the program that differ from those of the saved run are reported, with the value that counts: before the
// run, or after its first step.
func TestR13_changedSettingsAreTold(t *testing.T) {
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, c *configured, _ int64) (*configured, loop.Logs, error) {
		c.stepped = true
		return c, loop.Logs{}, nil
	})))
	m := &vfs.Mem{}
	f := openMem(t, m, checkpoint.Options{})
	_, _, err := run(t.Context(), l, &configured{rate: "0.003", clip: "1", batch: "32"}, loop.Until(loop.Steps(4)), saves(f, loop.Never))
	require.NoError(t, err)
	require.NoError(t, f.Close())

	var said bytes.Buffer
	f = openMem(t, m, checkpoint.Options{Log: slog.New(slog.NewTextHandler(&said, nil))})
	var told []checkpoint.Difference
	before := 0
	tell := checkpoint.Options{Changed: func(d checkpoint.Difference) error { told = append(told, d); return nil }}
	_, _, err = run(t.Context(), l, &configured{rate: "0.1", clip: "2", batch: "64"}, f.Resume(tell), loop.Until(loop.Steps(9)),
		loop.Watch(loop.AtStart, func(context.Context, loop.Report) error { before = len(told); return nil }))
	require.NoError(t, err)
	require.Equal(t, []checkpoint.Difference{{What: "optimizer.clip", Saved: "1", Now: "2"}, {What: "optimizer.rate", Saved: "0.003", Now: "0.1", Kept: true},
		{What: "batch", Saved: "32", Now: "64"}}, told)
	require.Equal(t, 2, before, "the batch size is known after the first step")
	require.Equal(t, "optimizer.rate was 0.003 and is 0.1; the saved value is used", told[1].String())
	require.Equal(t, 3, strings.Count(said.String(), "level=WARN"), said.String())
	require.Regexp(t, `what=optimizer.rate saved=0.003 now=0.1 in_force=saved\n`, said.String())
	require.Regexp(t, `what=batch saved=32 now=64 in_force=now\n`, said.String())

	refused, made := errors.New("no"), 0
	refuse := checkpoint.Options{At: new(checkpoint.Step(4)), Changed: func(checkpoint.Difference) error { return refused }}
	_, _, err = run(t.Context(), l, &configured{rate: "0.1", clip: "1"}, f.Resume(refuse), loop.Until(loop.Steps(9)),
		loop.Watch(loop.EachStep, func(context.Context, loop.Report) error { made++; return nil }))
	require.ErrorIs(t, err, refused)
	require.ErrorContains(t, err, "loop: resume: checkpoint: the run is resumed from step 4: no")
	require.Zero(t, made, "before the first step")
}

// R26: nothing is printed without a log. Changed receives important differences.
func TestR26_aFolderIsSilent(t *testing.T) {
	stderr, def := os.Stderr, slog.Default()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	os.Stderr = w
	slog.SetDefault(slog.New(slog.NewTextHandler(w, nil)))
	defer func() { os.Stderr = stderr; slog.SetDefault(def) }()
	m := &vfs.Mem{}
	for _, until := range []loop.Steps{10, 20} {
		f, err := checkpoint.OpenFS(m, "folder", checkpoint.Options{Keep: []checkpoint.Retention{{Best: 2, Metric: "test", Mode: loop.Lowest}}})
		require.NoError(t, err)
		resumed(t, f, until)
		require.NoError(t, f.Close())
	}
	text := read(t, m, dir(20)+"/state.safetensors")
	text[len(text)-1]++
	write(t, m, dir(20)+"/state.safetensors", text)
	f, err := checkpoint.OpenFS(m, "folder", checkpoint.Options{})
	require.NoError(t, err)
	var told []checkpoint.Difference
	result, err := looked(f, &counter{}, checkpoint.Options{Changed: func(d checkpoint.Difference) error { told = append(told, d); return nil }})
	require.NoError(t, err)
	require.Less(t, result.Elapsed.Steps, int64(20))
	require.Len(t, told, 1)
	require.Equal(t, "newest checkpoint", told[0].What)
	require.Contains(t, told[0].String(), "the newest checkpoint was skipped in favor of that of step 14: damaged: ")
	var damaged *checkpoint.DamagedError
	require.ErrorAs(t, told[0].Err, &damaged)
	require.NoError(t, w.Close())
	var said bytes.Buffer
	_, err = said.ReadFrom(r)
	require.NoError(t, err)
	require.Empty(t, said.String())
}

// A run that is to go on with another batch size or other data is refused, and the difference is named.
func TestF11_otherSettingsAreRefused(t *testing.T) {
	type settings struct {
		Data  string
		Batch int
		Rates []float64
	}
	was := settings{"train <1>.csv", 32, []float64{0.1, 0.5}}
	for _, row := range []struct {
		name       string
		saved, now any
		want       string // "" is no error
	}{
		{"nothing", was, was, ""},
		{"the batch size", was, settings{was.Data, 16, was.Rates}, "Batch was 32 and is 16"},
		{"the data", was, settings{"test.csv", 32, was.Rates}, `Data was "train \u003c1\u003e.csv" and is "test.csv"`},
		{"all", was, settings{"test.csv", 8, nil}, `Batch was 32 and is 8, Data was "train \u003c1\u003e.csv" and is "test.csv", Rates was [0.1,0.5] and is null`},
		{"a field more", map[string]any{"Batch": 32}, map[string]any{"Batch": 32, "Seed": 1}, "Seed was not there and is 1"},
		{"a field less", map[string]any{"Batch": 32, "Seed": 1}, map[string]any{"Batch": 32}, "Seed was 1 and is not there"},
		{"no object", 1, 2, "was 1 and is 2"},
		{"nothing at all", (*int)(nil), 2, "was null and is 2"},
		{"another kind", 1, map[string]any{"Batch": 32}, "was 1 and is not there, Batch was not there and is 32"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
			saveOnce(t, f, &valued{metrics: map[string]float64{"was": 1}}, loop.Elapsed{}, nil, checkpoint.Options{Same: row.saved})
			state := &valued{}
			_, err := looked(f, state, checkpoint.Options{Same: row.now})
			if row.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, `loop: resume: checkpoint: resume from step 1 in folder: the run was saved with other settings: `+row.want+"; give it the same ones, or begin in another folder")
			require.Empty(t, state.metrics, "nothing is restored")
		})
	}
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	_, err := looked(f, &valued{}, checkpoint.Options{Same: was})
	require.NoError(t, err, "a beginning has no settings")
	saveOnce(t, f, &valued{}, loop.Elapsed{}, nil)
	var told []checkpoint.Difference
	_, err = looked(f, &valued{}, checkpoint.Options{Same: 3, Changed: func(d checkpoint.Difference) error { told = append(told, d); return nil }})
	require.NoError(t, err)
	require.Equal(t, []checkpoint.Difference{{What: "Same", Saved: "not there", Now: "3"}}, told, "a run that was saved without settings continues")
	_, err = looked(f, &valued{}, checkpoint.Options{Same: func() {}})
	require.ErrorContains(t, err, "unsupported type")
	t.Log("F11: another batch size, other data, other rates: each refused by name, with both values")
}
