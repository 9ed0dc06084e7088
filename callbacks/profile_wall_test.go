package callbacks_test

import (
	"context"
	"encoding/binary"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// A profile of a busy run names its work: the run's time, whether or not Go's threads computed, without goroutines that
// only wait for it.
func TestR39_aProfileHasSamples(t *testing.T) {
	dir := t.TempDir()
	inner := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		waits()
		return s, loop.Logs{}, nil
	})))
	test := loop.Evaluation[int, int]{Name: "test", Loop: inner, Data: numbers(1)}
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		return s + spins(), loop.Logs{}, nil
	})),

		test.On(loop.EachStep))
	many, done := make(chan struct{}), make(chan struct{})
	for range 100 { // more than are looked at at first
		go func() { <-many; done <- struct{}{} }()
	}
	_, err := l.Run(t.Context(), 0, numbers(4), callbacks.Profile(dir, loop.Steps(0), loop.Steps(4)))
	close(many)
	for range 100 {
		<-done
	}
	require.NoError(t, err)
	cpu, wall := unzip(t, filepath.Join(dir, "cpu.pprof")), unzip(t, filepath.Join(dir, "time.pprof"))
	require.Contains(t, cpu, "callbacks_test.spins")
	require.Contains(t, wall, "callbacks_test.spins")
	require.Contains(t, wall, "callbacks_test.waits", "off the processor")
	require.NotContains(t, wall, "[...]).wait", "the outer run waits for the inner one")
	require.NotContains(t, wall, "(*wall)")
	lines, units := profiled(wall)
	require.Contains(t, lines, "callbacks_test.spins profile_wall_test.go", "as go tool pprof -lines and -list want it")
	require.Contains(t, lines, "callbacks_test.waits profile_wall_test.go")
	require.Equal(t, []string{"samples count", "time nanoseconds"}, units)
	t.Logf("R39: %d bytes of samples of the processor, %d of the run's time", len(cpu), len(wall))
}

//go:noinline
func spins() (n int) {
	for begin := time.Now(); time.Since(begin) < 50*time.Millisecond; n++ {
	}
	return n
}

//go:noinline
func waits() { time.Sleep(50 * time.Millisecond) }

// profiled reads the places of a profile.proto's samples, as function and file, and the units.
func profiled(profile string) (lines, units []string) {
	type fields map[uint64][]uint64
	var texts []string
	walk := func(b string) fields { // a text is given by its place in texts
		all := fields{}
		next := func() uint64 {
			x, n := binary.Uvarint([]byte(b[:min(len(b), binary.MaxVarintLen64)]))
			b = b[n:]
			return x
		}
		for b != "" {
			key, x := next(), next()
			if key&7 == 2 {
				texts, b, x = append(texts, b[:x]), b[x:], uint64(len(texts))
			}
			all[key>>3] = append(all[key>>3], x)
		}
		return all
	}
	top := walk(profile)
	name := func(i uint64) string { return texts[top[6][i]] }
	inner := func(field uint64) (all []fields) {
		for _, at := range top[field] {
			all = append(all, walk(texts[at]))
		}
		return all
	}
	functions, locations := map[uint64]string{}, map[uint64]string{}
	for _, f := range inner(5) {
		functions[f[1][0]] = path.Base(name(f[2][0])) + " " + path.Base(name(f[4][0]))
	}
	for _, l := range inner(4) {
		locations[l[1][0]] = functions[walk(texts[l[4][0]])[1][0]]
	}
	for _, s := range inner(2) {
		for _, at := range s[1] {
			lines = append(lines, locations[at])
		}
	}
	for _, u := range inner(1) {
		units = append(units, name(u[1][0])+" "+name(u[2][0]))
	}
	return lines, units
}
