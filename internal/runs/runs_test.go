package runs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/callbacks/tensorboard"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/runs"
	"github.com/lazo-ml/lazo/loop"
)

// state counts steps, and has settings as a training.
type state struct {
	N    int64
	Rate string
}

func (s *state) Content(context.Context) (checkpoint.Content, error) {
	return checkpoint.Content{Sections: map[string]any{"n": s.N}}, nil
}

func (s *state) Restore(_ context.Context, c *checkpoint.Checkpoint) error {
	return c.Section("n", &s.N)
}

func (s *state) Settings() []checkpoint.Setting {
	return []checkpoint.Setting{{Name: "optimizer.rate", Value: s.Rate}, {Name: "seed", Value: "1"}}
}

// losses are those of the steps.
var losses = []float64{3, 1, math.NaN(), 2, 1.5}

func train(t *testing.T, rate string, until int, fails error, options ...loop.Option) error {
	t.Helper()
	step := func(_ context.Context, s *state, _ int) (*state, loop.Logs, error) {
		s.N++
		var logs loop.Logs
		logs.Loss("loss", losses[(s.N-1)%int64(len(losses))])
		logs.Metric("val_accuracy", float64(s.N)/10)
		logs.Metric("score", float64(s.N))
		logs.Set("progress", "epoch", s.N)
		return s, logs, nil
	}
	batches := loop.Data[int](func(yield func(int, error) bool) {
		for i := 1; i <= until; i++ {
			if !yield(i, nil) {
				return
			}
		}
		if fails != nil {
			yield(0, fails)
		}
	})
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), &state{Rate: rate}, batches, options...)
	return err
}

func read(t *testing.T, dir string) map[string]runs.Run {
	t.Helper()
	places, _, err := runs.Find(t.Context(), dir)
	require.NoError(t, err)
	all, err := runs.ReadAll(t.Context(), places, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	found := map[string]runs.Run{}
	for _, r := range all {
		found[r.Name] = r
	}
	require.Len(t, found, len(all))
	return found
}

func TestRuns(t *testing.T) {
	dir := t.TempDir()
	in := func(name ...string) string {
		path := filepath.Join(append([]string{dir}, name...)...)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		return path
	}
	every := checkpoint.Every(loop.Steps(1))
	same := checkpoint.Options{Same: map[string]any{"width": 64, "data": "digits", "seed": 7}}
	require.NoError(t, train(t, "0.1", 5, nil, checkpoint.Resume(in("all"), every, same), callbacks.JSONL(in("all", "log.jsonl"), loop.EachStep),
		tensorboard.Write(in("all", "events"), loop.EachStep, tensorboard.Hyperparameters(map[string]any{"other": 1}))))
	boom := errors.New("boom")
	require.ErrorIs(t, train(t, "0.2", 3, boom, checkpoint.Resume(in("group", "failed"), every)), boom)
	require.NoError(t, train(t, "0.3", 2, nil, checkpoint.Resume(in("paused"), every), loop.Watch(loop.At(loop.Steps(2)), func(context.Context, loop.Report) error {
		return fmt.Errorf("later: %w", loop.ErrPause)
	})))
	require.NoError(t, train(t, "", 5, nil, callbacks.JSONL(in("rows", "a.jsonl"), loop.EachStep)))
	require.NoError(t, train(t, "", 2, nil, callbacks.CSV(in("rows", "b.csv"), loop.EachStep), callbacks.JSONL(in("rows", "b.jsonl"), loop.EachStep)))
	require.NoError(t, train(t, "", 5, nil, tensorboard.Write(in("board"), loop.EachStep, tensorboard.Hyperparameters(map[string]any{"rate": 0.5, "name": "x", "on": true}))))
	require.ErrorIs(t, train(t, "", 1, boom, tensorboard.Write(in("bad board"), loop.EachStep, tensorboard.Hyperparameters(map[string]any{"rate": 1}))), boom)
	running, err := checkpoint.Open(in("running"), checkpoint.Options{})
	require.NoError(t, err)
	defer running.Close()
	require.NoError(t, os.WriteFile(in("notes.csv"), []byte("elapsed,steps\n1,2\n"), 0o600))

	all := read(t, dir)
	require.ElementsMatch(t, []string{"all", "group/failed", "paused", "rows/a.jsonl", "rows/b.csv", "board", "bad board", "running"}, keys(all))
	for _, name := range []string{"all", "rows/a.jsonl", "board"} {
		r := all[name]
		require.NoError(t, r.Err)
		require.EqualValues(t, 5, r.Steps, name)
		require.Positive(t, r.Duration, name)
		require.ElementsMatch(t, []string{"losses.loss", "metrics.val_accuracy", "metrics.score"}, keys(r.Values), name)
		loss, accuracy, score := r.Values["losses.loss"], r.Values["metrics.val_accuracy"], r.Values["metrics.score"]
		require.Equal(t, []any{1.5, 1.0, loop.Lowest}, []any{loss.Last, loss.Best, loss.Mode}, name)
		require.Equal(t, loop.Highest, accuracy.Mode)
		require.InDelta(t, 0.5, accuracy.Best, 1e-7)
		require.EqualValues(t, 5, score.Last)
		require.True(t, math.IsNaN(score.Best), "the name does not say what is better")
	}
	require.Equal(t, map[string]string{"optimizer.rate": "0.1", "seed": "1", "same.seed": "7", "width": "64", "data": "digits"}, all["all"].Settings)
	require.Equal(t, map[string]string{"rate": "0.5", "name": "x", "on": "true"}, all["board"].Settings)
	for name, want := range map[string][2]string{
		"all": {"ended", "data ended after 5 steps"}, "group/failed": {"failed", "failed after 3 steps: loop: step 4: data: boom"},
		"paused": {"interrupted", "stopped after 2 steps: loop: step 2: at 2 steps: later: stop"}, "rows/a.jsonl": {}, "board": {"ended", ""}, "bad board": {"failed", ""}, "running": {"running", ""},
	} {
		require.Equal(t, want, [2]string{string(all[name].Status), all[name].Why}, name)
	}
	require.EqualValues(t, 3, all["group/failed"].Steps)

	require.NoError(t, train(t, "0.2", 4, nil, checkpoint.Resume(in("group", "failed"), every)))
	require.Equal(t, checkpoint.Ended, read(t, dir)["group/failed"].Status, "resumed")
	top := read(t, filepath.Join(dir, "all"))
	require.Len(t, top, 1, "a folder of one run")
	require.EqualValues(t, 5, top["all"].Steps)
}

func keys[V any](m map[string]V) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	return names
}

func TestRuns_damagedCheckpoint(t *testing.T) {
	dir := t.TempDir()
	for until := range 2 {
		require.NoError(t, train(t, "1", 1+until, nil, checkpoint.Resume(filepath.Join(dir, "a"))))
	}
	rot := func(step int) {
		path := filepath.Join(dir, "a", fmt.Sprintf("step-%012d", step), "state.safetensors")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		text[len(text)-20] ^= 1
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
	rot(2)
	r := read(t, dir)["a"]
	require.NoError(t, r.Err)
	require.EqualValues(t, 1, r.Steps, "the newest good one")
	rot(1)
	require.ErrorContains(t, read(t, dir)["a"].Err, "2 found, none can be read")
}

// 10,000 runs of 100 rows.
func BenchmarkReadAll(b *testing.B) {
	dir := b.TempDir()
	var text strings.Builder
	for step := range 100 {
		line, err := json.Marshal(map[string]any{"losses.loss": 1 / float64(step+1), "metrics.accuracy": 0.5, "losses.val_loss": 2, "metrics.val_accuracy": 0.25})
		require.NoError(b, err)
		fmt.Fprintf(&text, "{\"elapsed.steps\":%d,\"elapsed.samples\":%d,\"elapsed.time\":%d.5,%s\n", step+1, step*32, step, line[1:])
	}
	for i := range 10_000 {
		require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("run-%05d.jsonl", i)), []byte(text.String()), 0o600))
	}
	for b.Loop() {
		places, _, err := runs.Find(b.Context(), dir)
		require.NoError(b, err)
		all, err := runs.ReadAll(b.Context(), places, slog.New(slog.DiscardHandler))
		require.NoError(b, err)
		require.Len(b, all, 10_000)
		require.EqualValues(b, 100, all[9_999].Steps)
	}
}
