package flaxlike_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// F46: all that can be done with a model during its Fit, and then its Close.
//
//lazo:race
func TestF46_modelBesideAFit(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "weights")
	rows := map[string]func(m *flaxlike.Model) error{
		"Predict": func(m *flaxlike.Model) error {
			out, err := m.Predict(ctx, filled(t, 7, 3))
			if err == nil {
				_, err = sawAll(out, 3, 7)
			}
			return err
		},
		"Evaluate":        func(m *flaxlike.Model) error { _, err := m.Evaluate(ctx, filled(t, 5, 1)); return err },
		"Value":           func(m *flaxlike.Model) error { _, err := m.Value("/model/one"); return err },
		"Snapshot":        func(m *flaxlike.Model) error { s, err := snapshotOf(m)(ctx); return errors.Join(err, closed(s)) },
		"SetLearningRate": func(m *flaxlike.Model) error { return m.SetLearningRate(1) },
		"Save":            func(m *flaxlike.Model) error { return m.Save(path) },
		"Summary":         func(m *flaxlike.Model) error { _ = m.Summary().String(); return nil },
		"Fit": func(m *flaxlike.Model) error {
			_, err := m.Fit(ctx, filled(t, 4, 1), flaxlike.Fit{Output: io.Discard})
			return err
		},
		"Load": func(m *flaxlike.Model) error { // by a name of its own, which is whole
			err := m.Save(path + "2")
			if err == nil {
				err = m.Load(ctx, path+"2")
			}
			return err
		},
	}
	var results sync.Map
	for name, do := range rows {
		m := countedModel(t)
		require.NoError(t, m.Init(ctx, first(t, filled(t, 4, 1), 4)))
		var closing atomic.Bool
		begun := make(chan struct{})
		var once sync.Once
		var wg sync.WaitGroup
		var fitErr error
		wg.Go(func() {
			_, fitErr = m.Fit(ctx, filled(t, 32, 1), flaxlike.Fit{Epochs: 1 << 20, Output: io.Discard, Callbacks: []loop.Option{loop.Thin(10),
				loop.Watch(loop.Every(loop.Steps(16)), func(context.Context, loop.Report) error { // from inside, too
					once.Do(func() { close(begun) })
					_, err := m.Predict(ctx, filled(t, 6, 1))
					return err
				})}})
		})
		<-begun
		for range 2 {
			wg.Go(func() {
				for n := 0; ; n++ {
					err := do(m)
					switch {
					case err == nil:
					case errors.Is(err, xla.ErrBusy):
						time.Sleep(time.Millisecond)
						if closing.Load() {
							return
						}
					case closing.Load() && (errors.Is(err, managed.ErrClosed) || errors.Is(err, os.ErrNotExist)):
						results.Store(name, n)
						return
					default:
						t.Errorf("%s: %v", name, err)
						return
					}
					if closing.Load() && name == "Summary" {
						return
					}
				}
			})
		}
		time.Sleep(besideFor)
		closing.Store(true)
		require.NoError(t, m.Close())
		wg.Wait()
		require.ErrorIs(t, fitErr, managed.ErrClosed, name)
	}
	t.Logf("F46: %d ways to use a Model beside its Fit, by two goroutines, %v each, then Close: only ErrBusy and ErrClosed", len(rows), besideFor)
}

func closed(s loop.Snapshot) error {
	if s == nil {
		return nil
	}
	return s.Close()
}

// A second model of the same form, of another seed, compiles nothing, though the first one is closed.
//
//lazo:norace
func TestSecondModelCompilesNothing(t *testing.T) {
	var log bytes.Buffer
	r := plugintest.Uncached(t, xla.Log(slog.New(slog.NewTextHandler(&log, nil))))
	set := sorted(t, 64)
	for seed := range int64(3) {
		m, err := flaxlike.New(t.Context(), nn.Sequential{nn.Dense{Units: 7}, nn.Dropout{Rate: 0.2}, nn.Dense{Units: 3}}, flaxlike.WithLoss(sparse),
			flaxlike.WithMetrics("accuracy", "f1", "precision"), flaxlike.WithClassWeights(map[int]float64{0: 2, 1: 3, 2: 4}),
			flaxlike.WithSeed(seed), flaxlike.WithStrategy(strategies.Jit(r)))
		require.NoError(t, err)
		_, err = m.Fit(t.Context(), set, quiet(flaxlike.Fit{Validation: set}))
		require.NoError(t, err)
		_, err = m.Predict(t.Context(), set)
		require.NoError(t, err)
		require.NoError(t, m.Close())
		require.Equal(t, 3, strings.Count(log.String(), "cache=off"), "after seed %d", seed)
	}
	t.Log("3 models, 9 programs: 3 compilations")
}

// A training compiles each of its programs once: the step in blocks and for the last, smaller batch, the test of both
// sizes, and a prediction. Another process loads all of them from the cache.
//
//lazo:norace
func TestFit_compilesEachProgramOnce(t *testing.T) {
	sources := func(dir string) (log string) {
		var all bytes.Buffer
		r := plugintest.Uncached(t, xla.CompileCache(dir, 0), xla.Log(slog.New(slog.NewTextHandler(&all, nil))))
		m, err := flaxlike.New(t.Context(), nn.Sequential{nn.Dense{Units: 7}, nn.Dropout{Rate: 0.2}, nn.Dense{Units: 3}}, flaxlike.WithLoss(sparse),
			flaxlike.WithMetrics("accuracy"), flaxlike.WithStrategy(strategies.Jit(r)))
		require.NoError(t, err)
		_, err = m.Fit(t.Context(), sorted(t, 333), quiet(flaxlike.Fit{Validation: sorted(t, 75), Epochs: 3}))
		require.NoError(t, err)
		_, err = m.Evaluate(t.Context(), sorted(t, 49))
		require.NoError(t, err)
		_, err = m.Predict(t.Context(), sorted(t, 45))
		require.NoError(t, err)
		require.NoError(t, m.Close())
		for _, line := range regexp.MustCompile(`program="(.*?)" (cache=\w+)`).FindAllStringSubmatch(all.String(), -1) {
			log += line[1] + " " + line[2] + "\n"
		}
		return log
	}
	if dir := flag.Arg(0); dir != "" { // in the other process
		fmt.Print(sources(dir))
		return
	}
	dir := filepath.Join(t.TempDir(), "compiled")
	const once = "train step cache=miss\ntrain step cache=miss\ntest step cache=miss\ntest step cache=miss\n"
	require.Equal(t, once, sources(dir))
	self, err := os.Executable()
	require.NoError(t, err)
	other, err := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", dir).Output()
	require.NoError(t, err, "%s", other)
	require.Contains(t, string(other), strings.ReplaceAll(once, "miss", "hit"))
	require.NotContains(t, string(other), "miss")
}
