package callbacks_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/trace"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// dumper is a state that can be dumped.
type dumper struct {
	steps int
	dumps *[]int
	err   error
}

func (p dumper) DumpXLA(dir string) error {
	*p.dumps = append(*p.dumps, p.steps)
	if p.err != nil {
		return p.err
	}
	return os.WriteFile(filepath.Join(dir, "step.mlir"), []byte("module {}"), 0o600)
}

// tracing notes at which steps a trace was going on.
func tracing(at *[]int) loop.Task[dumper, int] {
	return loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, p dumper, _ int) (dumper, loop.Logs, error) {
		p.steps++
		if trace.IsEnabled() {
			*at = append(*at, p.steps)
		}
		return p, loop.Logs{}, nil
	}))

}

func TestProfile(t *testing.T) {
	for _, row := range []struct {
		name         string
		from, length loop.Period
		traced       []int
		dumped       []int
	}{
		{"in the middle", loop.Steps(3), loop.Steps(2), []int{4, 5}, []int{3}},
		{"from the beginning", loop.Steps(0), loop.Steps(3), []int{1, 2, 3}, []int{0}},
		{"samples", loop.Samples(8), loop.Samples(1), []int{9}, []int{8}},
		{"beyond the end", loop.Steps(8), loop.Steps(100), []int{9, 10}, []int{8}},
		{"no time to begin", loop.Time(time.Hour), loop.Time(time.Second), nil, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "profile")
			var traced, dumped []int
			_, err := loop.New(tracing(&traced)).Run(t.Context(), dumper{dumps: &dumped}, numbers(10), loop.Until(loop.Steps(10)), callbacks.Profile(dir, row.from, row.length))
			require.NoError(t, err)
			require.False(t, trace.IsEnabled())
			require.Equal(t, row.traced, traced)
			require.Equal(t, row.dumped, dumped)
			if row.traced == nil {
				require.NoDirExists(t, dir)
				return
			}
			require.FileExists(t, filepath.Join(dir, "xla", "step.mlir"))
			head, err := os.ReadFile(filepath.Join(dir, "trace.out"))
			require.NoError(t, err)
			require.Regexp(t, `^go 1\.\d+ trace`, string(head[:16]), "as go tool trace wants it")
			for _, name := range []string{"cpu.pprof", "time.pprof", "heap.pprof"} {
				unzip(t, filepath.Join(dir, name))
			}
		})
	}
}

// unzip reads a profile to its end, which verifies its checksum.
func unzip(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	profile, err := io.ReadAll(z)
	require.NoError(t, err)
	require.NotEmpty(t, profile)
	return string(profile)
}

func TestProfile_failsAtTheEndOnly(t *testing.T) {
	var traced, dumped []int
	run := func(state dumper, options ...loop.Option) (int64, error) {
		result, err := loop.New(tracing(&traced)).Run(t.Context(), state, numbers(10), options...)
		return result.Elapsed.Steps, err
	}
	t.Run("another profile is going on", func(t *testing.T) {
		one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
		steps, err := run(dumper{dumps: &dumped}, callbacks.Profile(one, loop.Steps(2), loop.Steps(5)), callbacks.Profile(two, loop.Steps(4), loop.Steps(1)))
		require.ErrorContains(t, err, "loop: at the end: step 10: at 4 steps or at 5 steps: profile "+two+": trace: ")
		require.ErrorContains(t, err, "CPU profile: ")
		require.NotContains(t, err.Error(), one)
		require.EqualValues(t, 10, steps)
		require.NoFileExists(t, filepath.Join(two, "trace.out"))
		unzip(t, filepath.Join(one, "cpu.pprof"))
	})
	t.Run("no directory", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		steps, err := run(dumper{dumps: &dumped}, callbacks.Profile(filepath.Join(file, "sub"), loop.Steps(2), loop.Steps(5)))
		require.ErrorContains(t, err, "at the end: ")
		require.EqualValues(t, 10, steps)
	})
	t.Run("no dump", func(t *testing.T) {
		boom := errors.New("boom")
		dir := t.TempDir()
		steps, err := run(dumper{dumps: &dumped, err: boom}, callbacks.Profile(dir, loop.Steps(2), loop.Steps(5)))
		require.ErrorIs(t, err, boom)
		require.ErrorContains(t, err, "dump of the XLA programs: ")
		require.EqualValues(t, 10, steps)
		unzip(t, filepath.Join(dir, "cpu.pprof"))
	})
}

func TestProfile_refuses(t *testing.T) {
	for i, row := range []struct {
		from, length loop.Period
		err          string
	}{
		{nil, loop.Steps(1), "the window has no start or no length"},
		{loop.Steps(1), nil, "the window has no start or no length"},
		{loop.Steps(1), loop.Steps(0), "the window must have a positive length and begin at 0 or later, got 0 steps from 1 step"},
		{loop.Steps(-1), loop.Steps(1), "the window must have a positive length and begin at 0 or later, got 1 step from -1 steps"},
		{loop.Steps(1), loop.Time(time.Second), "profile: the start and the length of the window must have the same unit, got 1s from 1 step"},
		{loop.Date(1), loop.Date(1), "the window must have a positive length and begin at 0 or later, got 1970-01-01T00:00:00Z from 1970-01-01T00:00:00Z"},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(1), callbacks.Profile("nowhere", row.from, row.length))
			require.EqualError(t, err, "loop: callback 1 (never: profile nowhere): "+row.err)
			_, err = byHand(callbacks.Profile("nowhere", row.from, row.length))
			require.EqualError(t, err, "callbacks: profile: "+row.err)
		})
	}
	_, err := byHand(callbacks.Profile("nowhere", loop.Date(time.Now().UnixNano()), loop.Time(time.Second)))
	require.NoError(t, err)
}

func TestProfile_byHandOnce(t *testing.T) {
	dir := t.TempDir()
	p, err := byHand(callbacks.Profile(dir, loop.Steps(2), loop.Steps(2)))
	require.NoError(t, err)
	for step := range int64(9) {
		require.NoError(t, p.Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: step}}))
		require.Equal(t, step == 2 || step == 3, trace.IsEnabled(), step)
		if step == 4 {
			require.NoError(t, os.Remove(filepath.Join(dir, "heap.pprof")))
		}
	}
	require.NoError(t, p.End(t.Context(), loop.Ending{}))
	require.NoFileExists(t, filepath.Join(dir, "heap.pprof"), "it is not written again")
}
