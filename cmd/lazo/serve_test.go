package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
)

// A folder's models are served by name and version. A file that is replaced, added, damaged or removed changes what is
// served, and no request is lost; a signal ends the command.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	m := must.M1(flaxlike.New(t.Context(), nn.Dense{Units: 1}, flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))), flaxlike.WithLoss("mse")))
	defer m.Close()
	require.NoError(t, m.Init(t.Context(), data.Batch{Fields: []data.Field{data.X([]float32{1}, 1, 1)}}))
	save := func(name string, factor float32) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, m.SetValue("/model/kernel", tensors.FromFlatDataAndDimensions([]float32{factor}, 1, 1)))
		require.NoError(t, m.Save(filepath.Join(dir, name)))
	}
	save("m/1.safetensors", 2)
	save("other.safetensors", 7)

	c := exec.CommandContext(t.Context(), lazo, "serve", dir, "--listen", "127.0.0.1:0", "--reload", "20ms", "--drain", "0s", "--max-batch", "4", "--log", "json")
	var stderr strings.Builder
	c.Stderr = &stderr
	out := must.M1(c.StdoutPipe())
	require.NoError(t, c.Start())
	address := strings.TrimSpace(must.M1(bufio.NewReader(out).ReadString('\n')))
	ask := func(path string) (status int, answer string) {
		r, err := http.Post(address+"/models/"+path+"/infer", "application/json", strings.NewReader(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,1],"data":[1]}]}`))
		if err != nil {
			return 0, err.Error()
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		return r.StatusCode, fmt.Sprint(string(text), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	// until waits for an answer, as long as ctx.
	until := func(path string, status int, part string) {
		for {
			got, answer := ask(path)
			if got == status && strings.Contains(answer, part) {
				return
			}
			require.NoError(t, ctx.Err())
			require.Contains(t, []int{200, 404}, got, answer)
		}
	}
	until("m", 200, `"data":[2]`)
	until("other", 200, `"data":[7]`)

	var lost, answered atomic.Int64
	var group sync.WaitGroup
	done := make(chan struct{})
	group.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if status, answer := ask("m"); status != 200 {
				lost.Add(1)
				t.Log(answer)
			}
			answered.Add(1)
		}
	})
	save("m/1.safetensors", 3)
	until("m", 200, `"data":[3]`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "m/best.safetensors"), nil, 0o600)) // an error, and the others are served
	require.NoError(t, os.Mkdir(filepath.Join(dir, "..data"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "..data/m.safetensors"), nil, 0o600)) // a volume of Kubernetes has it
	save("m/2.safetensors", 4)
	until("m", 200, `"data":[4]`)
	until("m/versions/1", 200, `"data":[3]`)
	damaged := filepath.Join(t.TempDir(), "damaged") // renamed: a file that is being written has an error of its own
	require.NoError(t, os.WriteFile(damaged, []byte("damaged"), 0o600))
	require.NoError(t, os.Rename(damaged, filepath.Join(dir, "m/2.safetensors")))
	require.NoError(t, os.Remove(filepath.Join(dir, "other.safetensors")))
	until("other", 404, "there is no model")
	until("m", 200, `"data":[4]`)
	require.NoError(t, os.Remove(filepath.Join(dir, "m/2.safetensors")))
	until("m", 200, `"data":[3]`)
	close(done)
	group.Wait()
	require.Zero(t, lost.Load(), "of %d", answered.Load())

	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	_ = c.Wait()
	require.Equal(t, 143, c.ProcessState.ExitCode(), stderr.String())
	require.Contains(t, stderr.String(), `"msg":"reload","error":"`+filepath.Join(dir, "m/best.safetensors")+": expected the name of a version, as 1.safetensors")
	require.Contains(t, stderr.String(), filepath.Join(dir, "m/2.safetensors")+": flaxlike: open")
	require.LessOrEqual(t, strings.Count(stderr.String(), `"msg":"reload"`), 3, "each error once: "+stderr.String())
	require.Contains(t, stderr.String(), `"msg":"request","method":"POST"`)
}

func TestServe_refuses(t *testing.T) {
	empty, twice, named := t.TempDir(), t.TempDir(), t.TempDir()
	for _, file := range []string{filepath.Join(twice, "m.safetensors"), filepath.Join(twice, "m", "1.safetensors"), filepath.Join(named, "m", "best.safetensors")} {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, nil, 0o600))
	}
	for want, args := range map[string][]string{
		"there is no model, expected files NAME.safetensors, or NAME/1.safetensors": {empty},
		"are version 1 of one model, expected one of them":                          {twice},
		"best.safetensors: expected the name of a version, as 1.safetensors":        {named},
		"no such file or directory":                                                 {filepath.Join(empty, "none")},
		"MaxBody is -1 and Timeout is 1m0s, expected 0 (not given) or more":         {empty, "--max-body=-1"},
		"--reload is -1s and --drain is 1s, expected 0 or more":                     {empty, "--reload=-1s"},
		"m.safetensors: ": {filepath.Join(twice, "m.safetensors")},
	} {
		r := run(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
		require.Equal(t, 1, r.code)
		require.Contains(t, r.stderr, want)
	}
}

// A row of a table has the same bits as its answer by the model that was trained, the model of its file, the command
// and the server, as JSON and as CSV.
func TestServe_rowsOfATable(t *testing.T) {
	dir, strategy := t.TempDir(), flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t)))
	path, rows := filepath.Join(dir, "birds.safetensors"), filepath.Join(dir, "rows.jsonl")
	table := must.M1(tables.Read(strings.NewReader("mass,place,kind\n"+strings.Repeat("1,sea,fish\n2.5,land,cow\n,sea,fish\n4,land,cow\n", 8)), tables.Format{Texts: true}))
	p := must.M1(tables.Fit(table, tables.Numbers{Columns: []string{"mass"}, Fill: tables.FillMean, Scale: tables.Standard},
		tables.Categories{Columns: []string{"place"}}, tables.Labels{Columns: []string{"kind"}}))
	m := must.M1(flaxlike.New(t.Context(), nn.Sequential{nn.Dense{Units: 5}, nn.Activation("tanh"), nn.Dense{Units: 2}}, strategy,
		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithPreparation(p)))
	defer m.Close()
	must.M1(m.Fit(t.Context(), table, flaxlike.Fit{Epochs: 2, Output: io.Discard}))
	require.NoError(t, m.Save(path))
	again := must.M1(flaxlike.Open(t.Context(), path, strategy))
	defer again.Close()
	row := map[string]any{"mass": 1.7, "place": "sea"}
	answer := func(m *flaxlike.Model) string {
		p := must.M1(m.PredictRows(t.Context(), row))
		odds := must.M1(p.Probabilities()).Flat.([]float32)
		return string(must.M1(json.Marshal(map[string]any{"preds_class": must.M1(p.Labels())[0][0], "preds_probability": map[string]float32{"cow": odds[0], "fish": odds[1]}}))) + "\n"
	}
	want := answer(m)
	require.Equal(t, want, answer(again), "the model of the file")

	const text, cells = `{"place":"sea","mass":1.7}`, "mass,place\n1.7,sea\n"
	require.NoError(t, os.WriteFile(rows, []byte(text), 0o600))
	r := run(t, "model", "predict", path, rows)
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, want, r.stdout, "the command")
	csv := filepath.Join(dir, "rows.csv")
	require.NoError(t, os.WriteFile(csv, []byte(cells), 0o600))
	r = run(t, "model", "predict", "--output", "json", path, csv)
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, want, r.stdout, "the command, of CSV")

	c := exec.CommandContext(t.Context(), lazo, "serve", path, "--listen", "127.0.0.1:0", "--reload", "0s", "--drain", "0s", "--max-batch", "2")
	out := must.M1(c.StdoutPipe())
	require.NoError(t, c.Start())
	address := strings.TrimSpace(must.M1(bufio.NewReader(out).ReadString('\n')))
	for _, sent := range [][2]string{{"application/json", text}, {"text/csv", cells}} {
		r, err := http.Post(address+"/models/birds/rows", sent[0], strings.NewReader(sent[1]))
		require.NoError(t, err)
		got, err := io.ReadAll(r.Body)
		require.NoError(t, errors.Join(err, r.Body.Close()))
		require.Equal(t, "["+strings.TrimSpace(want)+"]", string(got), "the server")
	}
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	_ = c.Wait()
	require.Equal(t, 143, c.ProcessState.ExitCode())
}
