package mlflow_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazo-ml/lazo/callbacks/mlflow"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { os.Exit(code) }))
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// warnings returns what the default logger got.
func warnings(t *testing.T) func() string {
	t.Helper()
	var b safeBuffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&b, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return func() string {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.b.String()
	}
}

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
	return []checkpoint.Setting{{Name: "optimizer.rate", Value: s.Rate}, {Name: "data"}}
}

func train(ctx context.Context, rate string, steps int, options ...loop.Option) error {
	step := func(_ context.Context, s *state, _ int) (*state, loop.Logs, error) {
		s.N++
		var logs loop.Logs
		logs.Loss("loss", 1/float64(s.N))
		logs.Metric("loss", float64(s.N))
		logs.Output("picture", []float32{1, 2})
		return s, logs, nil
	}
	batches := loop.Data[int](func(yield func(int, error) bool) {
		for i := 0; i < steps && yield(i, nil); i++ {
		}
	})
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(ctx, &state{Rate: rate}, batches, options...)
	return err
}

func TestRecord(t *testing.T) {
	f, logs := newFake(t), warnings(t)
	file := filepath.Join(t.TempDir(), "notes.txt")
	require.NoError(t, os.WriteFile(file, []byte("hello"), 0o600))
	model := func(dir string) (mlflow.Signature, error) {
		return mlflow.Signature{Inputs: []mlflow.Tensor{{Name: "x", Type: "float32", Dims: []int{-1, 3}}}}, os.WriteFile(filepath.Join(dir, "weights"), []byte("abc"), 0o600)
	}
	require.NoError(t, train(t.Context(), "0.1", 20, loop.Until(loop.Steps(20)), mlflow.Record(mlflow.Run{URL: f.URL, Name: "first", Token: "secret",
		Parameters: map[string]any{"a": 1, "b": map[string]any{"c": true}}, Tags: map[string]string{"team": "x"}, Artifacts: []string{file}, Model: model}, loop.EachStep)))
	require.Empty(t, logs())
	require.Len(t, f.runs, 1)
	r := f.runs[0]
	require.Equal(t, []string{"first", "FINISHED", "x"}, []string{r.name, r.status, r.tags["team"]})
	require.Equal(t, map[string]string{"optimizer.rate": "0.1", "until": "20 steps", "a": "1", "b.c": "true"}, r.params)
	require.Len(t, r.values, 2)
	for name, last := range map[string]float64{"loss": 0.05, "metrics/loss": 20} {
		require.Len(t, r.values[name], 20, name)
		for i, v := range r.values[name] {
			require.EqualValues(t, i+1, v.Step)
			require.InDelta(t, time.Now().UnixMilli(), v.Timestamp, 1e7)
		}
		require.Equal(t, last, r.values[name][19].Value)
	}
	require.Equal(t, "hello", r.files["notes.txt"])
	require.Equal(t, "abc", r.files["model/weights"])
	require.Contains(t, r.files["model/MLmodel"], `"inputs": "[{\"name\":\"x\",\"tensor-spec\":{\"dtype\":\"float32\",\"shape\":[-1,3]},\"type\":\"tensor\"}]"`)
	require.Equal(t, 1, f.requests["runs/log-model"])
	require.Equal(t, "Bearer secret", f.header.Get("Authorization"))
}

// A resumed run continues the record of its ID; what differs is a tag.
func TestRecord_resumed(t *testing.T) {
	f, logs, dir := newFake(t), warnings(t), t.TempDir()
	for i, rate := range []string{"0.1", "0.2"} {
		var id string
		require.NoError(t, train(t.Context(), rate, 3*(i+1), mlflow.Record(mlflow.Run{URL: f.URL, ID: &id}, loop.EachStep),
			checkpoint.Resume(dir, checkpoint.Options{Also: map[string]any{"mlflow": &id}})))
		require.NotEmpty(t, id)
	}
	require.Empty(t, logs())
	require.Len(t, f.runs, 1)
	require.Len(t, f.runs[0].values["loss"], 6)
	require.Equal(t, "0.1", f.runs[0].params["optimizer.rate"])
	require.Equal(t, "0.2", f.runs[0].tags["changed.optimizer.rate"])
	require.Equal(t, "FINISHED", f.runs[0].status)
}

// Each request keeps the limits of the server.
func TestRecord_limits(t *testing.T) {
	f, logs := newFake(t), warnings(t)
	parameters, tags := map[string]any{}, map[string]string{}
	for i := range 250 {
		parameters[fmt.Sprintf("p%d (ü)", i)] = strings.Repeat("x", 10_000)
		tags[fmt.Sprint("t", i)] = strings.Repeat("y", 10_000)
	}
	many := func(_ context.Context, n, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		for i := range 100 {
			logs.Metric(fmt.Sprint("m", i), float64(n))
		}
		return n + 1, logs, nil
	}
	batches := loop.Data[int](func(yield func(int, error) bool) {
		for i := 0; i < 100 && yield(i, nil); i++ {
		}
	})
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(many))).Run(t.Context(), 0, batches, mlflow.Record(mlflow.Run{URL: f.URL, Parameters: parameters, Tags: tags}, loop.EachStep))
	require.NoError(t, err)
	require.Empty(t, logs())
	require.LessOrEqual(t, f.largest[0], 1000)
	require.LessOrEqual(t, f.largest[1], 100)
	require.LessOrEqual(t, f.largest[2], 100)
	require.LessOrEqual(t, f.largest[3], 1_000_000)
	require.Len(t, f.runs[0].params, 250)
	require.Len(t, f.runs[0].params["p0 _28__C3__BC__29_"], 6000)
	require.Len(t, f.runs[0].tags, 251)
	require.Len(t, f.runs[0].values, 100)
	require.Len(t, f.runs[0].values["m7"], 100)
}

func TestRecord_statuses(t *testing.T) {
	for want, err := range map[string]error{"FAILED": errors.New("boom"), "FINISHED": loop.ErrStop, "KILLED": loop.ErrPause} {
		f := newFake(t)
		_ = train(t.Context(), "", 3, mlflow.Record(mlflow.Run{URL: f.URL}, loop.EachStep), loop.Watch(loop.At(loop.Steps(2)), func(context.Context, loop.Report) error { return err }))
		require.Equal(t, want, f.runs[0].status)
	}
	f := newFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, train(ctx, "", 3, mlflow.Record(mlflow.Run{URL: f.URL}, loop.EachStep), loop.Watch(loop.At(loop.Steps(2)), func(context.Context, loop.Report) error {
		cancel()
		return nil
	})), context.Canceled)
	require.Equal(t, "KILLED", f.runs[0].status)
}

func TestRecord_mistakes(t *testing.T) {
	for _, url := range []string{"", "localhost:5000", "ftp://x", "http://", "file:///tmp"} {
		require.ErrorContains(t, train(t.Context(), "", 1, mlflow.Record(mlflow.Run{URL: url}, loop.EachStep)), "mlflow: the URL is not of the form")
	}
	require.ErrorContains(t, train(t.Context(), "", 1, mlflow.Record(mlflow.Run{URL: "http://a", Timeout: -1}, loop.EachStep)), "must not be negative")
}
