package mlflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks/mlflow"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
)

// patience is for a machine with other work.
const patience = 5 * time.Minute

// server starts MLflow's own, and returns its address.
func server(t *testing.T, python string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(free.Addr().String())
	require.NoError(t, err)
	require.NoError(t, free.Close())
	cmd := exec.Command(python, append([]string{"-m", "mlflow", "server", "--host", "127.0.0.1", "--port", port, "--workers", "1",
		"--backend-store-uri", "sqlite:///" + filepath.Join(dir, "mlflow.db")}, args...)...)
	cmd.Dir = dir
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	url := "http://127.0.0.1:" + port
	require.Eventually(t, func() bool {
		answer, err := http.Get(url + "/health")
		if err == nil {
			_ = answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK
	}, patience, 100*time.Millisecond, "the server does not start")
	return url
}

type recorded struct {
	Name, Status string
	Ended        bool
	Params, Tags map[string]string
	Last         map[string]string
	Metrics      map[string][][2]any
	Files        [][2]any
	Model        *struct {
		Inputs, Outputs [][3]any
		Flavors         map[string]any
		File            string
	}
}

func recordsOf(t *testing.T, python, url, experiment string) (all []recorded) {
	t.Helper()
	cmd := exec.Command(python, "testdata/check.py", url, experiment)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &all))
	return all
}

func classifier(t *testing.T, rate float64) *flaxlike.Model {
	t.Helper()
	m, err := flaxlike.New(t.Context(), nn.Sequential{nn.Flatten{}, nn.Dense{Units: 10}}, flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))),
		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"), flaxlike.WithLearningRate(rate))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// A real server has all that a Fit recorded, of a resumed run in one record.
func TestInterop(t *testing.T) {
	python := os.Getenv("LAZO_PYTHON")
	if python == "" {
		t.Skip("NOT TESTED against mlflow server: make mlflow does that")
	}
	logs := warnings(t)
	url := server(t, python)
	set, _, err := data.Digits()
	require.NoError(t, err)
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes")
	require.NoError(t, os.MkdirAll(filepath.Join(notes, "inner"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(notes, "inner", "a b.txt"), []byte("hello"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(notes, "empty"), nil, 0o600))
	fit := func(epochs int, rate float64) {
		model, id := classifier(t, rate), ""
		_, err = model.Fit(t.Context(), set, flaxlike.Fit{Epochs: epochs, BatchSize: 100, ValidationSplit: 0.1, Output: io.Discard, Callbacks: []loop.Option{
			mlflow.Record(mlflow.Run{URL: url, Experiment: "digits ü", Name: "first", ID: &id, Parameters: map[string]any{"note": "x", "of": map[string]any{"width": 3}},
				Tags: map[string]string{"team": "a"}, Timeout: patience, Deadline: patience, Artifacts: []string{notes}, Model: mlflow.SaveModel(model)}, loop.Every(loop.Epochs(1))),
			checkpoint.Resume(filepath.Join(dir, "run"), checkpoint.Options{Also: map[string]any{"mlflow": &id}}),
		}})
		require.NoError(t, err)
	}
	fit(2, 0.01)
	fit(4, 0.02)
	require.Empty(t, logs())
	all := recordsOf(t, python, url, "digits ü")
	require.Len(t, all, 1, "the resumed run continues the record")
	r := all[0]
	require.Equal(t, []any{"first", "FINISHED", true}, []any{r.Name, r.Status, r.Ended})
	for _, name := range []string{"loss", "accuracy", "val_loss", "val_accuracy", "learning_rate"} {
		var steps []any
		for _, m := range r.Metrics[name] {
			steps = append(steps, m[0])
		}
		require.Len(t, steps, 4, name)
		require.IsIncreasing(t, toFloats(steps), name)
	}
	for name, want := range map[string]string{"note": "x", "of.width": "3", "until": "2 epochs", "batch": "100, and the rest", "optimizer.rate": "0.01", "seed": "0"} {
		require.Equal(t, want, r.Params[name], name)
	}
	require.Contains(t, r.Params["data"], "examples: x")
	require.Equal(t, "a", r.Tags["team"])
	require.Equal(t, "4 epochs", r.Tags["changed.until"])
	require.Contains(t, r.Files, [2]any{"notes/inner/a b.txt", 5.0})
	require.Contains(t, r.Files, [2]any{"notes/empty", nil})
	require.Equal(t, [][3]any{{"x", "float32", []any{-1.0, 8.0, 8.0, 1.0}}}, r.Model.Inputs)
	require.Equal(t, "float32", r.Model.Outputs[0][1])
	require.Equal(t, []any{-1.0, 10.0}, r.Model.Outputs[0][2])
	require.Contains(t, r.Model.Flavors, "lazo")
	again, err := flaxlike.Open(t.Context(), r.Model.File, flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))))
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

func toFloats(list []any) (all []float64) {
	for _, v := range list {
		all = append(all, v.(float64))
	}
	return all
}

// Statuses, values that JSON lacks, names that a server refuses, and more values than a request takes.
func TestInterop_endsAndNumbers(t *testing.T) {
	python := os.Getenv("LAZO_PYTHON")
	if python == "" {
		t.Skip("NOT TESTED against mlflow server: make mlflow does that")
	}
	logs := warnings(t)
	url := server(t, python, "--no-serve-artifacts", "--default-artifact-root", "file://"+t.TempDir())
	boom := errors.New("boom")
	file := filepath.Join(t.TempDir(), "a.txt")
	require.NoError(t, os.WriteFile(file, []byte("local"), 0o600))
	for i, row := range []struct {
		steps int
		err   error
		stop  error
	}{{steps: 200}, {steps: 3, err: boom}, {steps: 2, err: context.Canceled}, {steps: 2, stop: loop.ErrPause}} {
		ctx, cancel := context.WithCancel(t.Context())
		step := func(_ context.Context, n, _ int) (int, loop.Logs, error) {
			var logs loop.Logs
			logs.Loss("loss", []float64{math.NaN(), math.Inf(-1), 1e-300, 1.0 / 3}[n%4])
			logs.Metric("a%ü(1)", float64(n))
			logs.Metric("loss", 2)
			for i := range 5 {
				logs.Metric(fmt.Sprint("m", i), float64(n))
			}
			if n+1 == row.steps {
				switch {
				case row.stop != nil:
					return n + 1, logs, row.stop
				case errors.Is(row.err, context.Canceled):
					cancel()
				default:
					return n + 1, logs, row.err
				}
			}
			return n + 1, logs, nil
		}
		batches := loop.Data[int](func(yield func(int, error) bool) {
			for i := 0; i < row.steps && yield(i, nil); i++ {
			}
		})
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(ctx, 0, batches,
			mlflow.Record(mlflow.Run{URL: url, Experiment: "ends", Name: fmt.Sprint(i), Artifacts: []string{file}, Timeout: patience, Deadline: patience}, loop.EachStep))
		require.ErrorIs(t, err, row.err)
		cancel()
	}
	require.Empty(t, logs())
	all := recordsOf(t, python, url, "ends")
	require.Len(t, all, 4)
	for i, want := range []string{"FINISHED", "FAILED", "KILLED", "KILLED"} {
		require.Equal(t, want, all[i].Status, i)
		require.Equal(t, [][2]any{{"a.txt", 5.0}}, all[i].Files)
	}
	long := all[0].Metrics
	require.Len(t, long["loss"], 200)
	require.Len(t, long["metrics/loss"], 200)
	require.Len(t, long["a_25__C3__BC__28_1_29_"], 200)
	require.Equal(t, "nan", long["loss"][0][1])
	require.Equal(t, "1e-300", long["loss"][2][1])
	require.Equal(t, "0.3333333333333333", long["loss"][3][1])
}
