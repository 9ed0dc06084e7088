//lazo:norace
package main_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/decision"
	"github.com/lazo-ml/lazo/flaxlike/report"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/serve"
	"github.com/lazo-ml/lazo/strategies"
)

// answered has the outputs that one interface returned for an example.
type answered struct {
	probabilities []float64
	labels        []string
}

const answeredRows = 60

// noisy are examples of two numbers, with labels of several classes that the numbers say with some noise.
func noisy(t *testing.T, kind string) *data.Set {
	r := rand.New(rand.NewPCG(5, 6))
	x, one, hot := make([]float32, 2*answeredRows), make([]int32, answeredRows), make([]float32, 3*answeredRows)
	for i := range one {
		for k := range 2 {
			x[2*i+k] = float32(r.NormFloat64())
		}
		a, b := float64(x[2*i])+r.NormFloat64(), float64(x[2*i+1])+r.NormFloat64()
		switch {
		case kind == "binary" && a > 1:
			one[i] = 1
		case kind == "classes" && a > b:
			one[i] = 1
		case kind == "classes" && b > 0.5:
			one[i] = 2
		}
		for k, is := range []bool{a > 0.7, b > 0, a+b > 1} {
			if is {
				hot[3*i+k] = 1
			}
		}
	}
	if kind == "multi-label" {
		return must.M1(data.New(data.X(x, answeredRows, 2), data.Y(hot, answeredRows, 3)))
	}
	return must.M1(data.New(data.X(x, answeredRows, 2), data.Y(one, answeredRows)))
}

// Every door gives the same answers: a model, for one example, a batch and a set; its saved file, opened and by lazo
// model predict; a server; and the page of package report. So it is before anything was fitted, with Evaluate too, and
// for a model that is calibrated, with thresholds, names and weights of classes.
// S34: the files of lazo model predict and the server name the classes.
func TestS32_everyDoorGivesTheSameAnswers(t *testing.T) {
	for kind, row := range map[string]struct {
		loss  string
		width int
		names []string
	}{
		"binary":      {"binary_crossentropy", 1, []string{"no", "yes"}},
		"classes":     {"sparse_categorical_crossentropy", 3, []string{"ant", "bee", "cat"}},
		"multi-label": {"binary_crossentropy", 3, []string{"ant", "bee", "cat"}},
	} {
		t.Run(kind, func(t *testing.T) {
			set := noisy(t, kind)
			options := []flaxlike.Option{flaxlike.WithLoss(row.loss), flaxlike.WithClasses(row.names), flaxlike.WithLearningRate(0.3),
				flaxlike.WithMetrics("accuracy"), flaxlike.WithBatchSize(16), flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t)))}
			if kind == "multi-label" {
				options[3] = flaxlike.WithMetrics("binary_accuracy")
			} else {
				options = append(options, flaxlike.WithClassWeights(map[int]float64{1: 2.5}))
			}
			m := must.M1(flaxlike.New(t.Context(), nn.Dense{Units: row.width}, options...))
			defer m.Close()
			must.M1(m.Fit(t.Context(), set, flaxlike.Fit{Epochs: 8, Output: io.Discard}))
			plain := compareDoors(t, m, set, kind, row.names)
			figures := must.M1(m.Evaluate(t.Context(), set))
			require.InDelta(t, figures[map[string]string{"multi-label": "binary_accuracy"}[kind]+map[string]string{"binary": "accuracy", "classes": "accuracy"}[kind]],
				rightShare(set, kind, row.names, plain), 1e-6, "without thresholds, Evaluate counts the same")

			must.M1(m.Calibrate(t.Context(), set))
			if kind != "classes" {
				must.M1(m.ChooseThresholds(t.Context(), set, decision.Aim{Recall: 0.95}))
			}
			fitted := compareDoors(t, m, set, kind, row.names)
			require.NotEqual(t, plain, fitted)
		})
	}
}

func rightShare(set *data.Set, kind string, names []string, all []answered) float64 {
	y := set.Fields()[1].Array
	right, of := 0, 0
	for i, a := range all {
		if kind != "multi-label" {
			of++
			if a.labels[0] == names[y.Flat.([]int32)[i]] {
				right++
			}
			continue
		}
		for k, name := range names {
			of++
			if strings.Contains(strings.Join(a.labels, " "), name) == (y.Flat.([]float32)[3*i+k] == 1) {
				right++
			}
		}
	}
	return float64(right) / float64(of)
}

// answersOf are those of a prediction.
func answersOf(t *testing.T, p flaxlike.Prediction) (all []answered) {
	probabilities, labels := must.M1(p.Probabilities()), must.M1(p.Labels())
	width := probabilities.Dims[1]
	for i := range p.Len() {
		a := answered{labels: labels[i]}
		for _, v := range probabilities.Flat.([]float32)[i*width : (i+1)*width] {
			a.probabilities = append(a.probabilities, float64(v))
		}
		all = append(all, a)
	}
	return all
}

func compareDoors(t *testing.T, m *flaxlike.Model, set *data.Set, kind string, names []string) []answered {
	t.Helper()
	want := answersOf(t, must.M1(m.Predict(t.Context(), set)))
	require.Len(t, want, answeredRows)
	same := func(door string, got []answered) {
		t.Helper()
		require.Len(t, got, len(want), door)
		for i := range want {
			require.Equal(t, len(want[i].labels), len(got[i].labels), "%s: example %d", door, i)
			for k := range want[i].labels {
				require.Equal(t, want[i].labels[k], got[i].labels[k], "%s: example %d", door, i)
			}
			require.InDeltaSlice(t, want[i].probabilities, got[i].probabilities, 1e-6, "%s: example %d", door, i)
		}
	}
	x := set.Fields()[0].Array
	flat := x.Flat.([]float32)
	var one, batches []answered
	for i := range x.Len() {
		one = append(one, answersOf(t, must.M1(m.PredictOne(t.Context(), data.X(flat[2*i:2*i+2], 2))))...)
	}
	same("PredictOne", one)
	for p, err := range m.PredictBatches(t.Context(), set.Batches(7, data.Kept)) {
		require.NoError(t, err)
		batches = append(batches, answersOf(t, p)...)
	}
	same("PredictBatches", batches)

	dir := t.TempDir()
	path := filepath.Join(dir, "model.safetensors")
	require.NoError(t, m.Save(path))
	opened := must.M1(flaxlike.Open(t.Context(), path, flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t)))))
	defer opened.Close()
	same("Open", answersOf(t, must.M1(opened.Predict(t.Context(), set))))

	same("lazo model predict, CSV", ofCSV(t, path, flat, kind, names))
	same("lazo model predict, JSON", ofJSON(t, path, flat, kind, names))
	same("serve", ofServer(t, opened, flat, kind, names))

	// The page.
	require.NoError(t, report.Run{Model: m, Test: set}.Save(t.Context(), dir))
	page := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(string(must.M1(os.ReadFile(filepath.Join(dir, "report.html")))), " ")
	page = strings.Join(strings.Fields(page), " ")
	y := set.Fields()[1].Array
	if kind == "multi-label" {
		for k, name := range names {
			hits, said, are := 0, 0, 0
			for i, a := range want {
				is, says := y.Flat.([]float32)[3*i+k] == 1, strings.Contains(strings.Join(a.labels, " "), name)
				are, said = are+map[bool]int{true: 1}[is], said+map[bool]int{true: 1}[says]
				hits += map[bool]int{true: 1}[is && says]
			}
			require.Contains(t, page, fmt.Sprintf(" %s %d %d %d %d ", name, hits, said-hits, are-hits, len(want)-said-are+hits), "the confusion of each class")
		}
	} else {
		share := rightShare(set, kind, names, want)
		right := int(math.Round(share * answeredRows))
		require.Contains(t, page, fmt.Sprintf("%d of %d examples are right", right, answeredRows), "the confusion matrix")
		require.Contains(t, page, fmt.Sprintf("right classes %.6g (%d of %d)", share, right, answeredRows))
		require.Contains(t, page, "weights of classes 1: 2.5")
	}
	for _, c := range m.Describe().Calibrations["preds"] {
		require.Contains(t, page, c.String())
	}
	for _, threshold := range m.Describe().Thresholds["preds"] {
		require.Contains(t, page, fmt.Sprint(threshold))
	}
	return want
}

// shown are the classes with a probability of their own.
func shown(kind string, names []string) []string {
	if kind == "binary" {
		return names[1:]
	}
	return names
}

func ofCSV(t *testing.T, model string, flat []float32, kind string, names []string) (all []answered) {
	text := "a,b\n"
	for i := 0; i < len(flat); i += 2 {
		text += fmt.Sprintf("%v,%v\n", flat[i], flat[i+1])
	}
	path := filepath.Join(t.TempDir(), "rows.csv")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	r := run(t, "model", "predict", model, path)
	require.Zero(t, r.code, r.stderr)
	rows := must.M1(csv.NewReader(strings.NewReader(r.stdout)).ReadAll())
	var header []string
	for _, name := range shown(kind, names) {
		header = append(header, "preds_probability_"+name)
	}
	if n := len(header); kind == "multi-label" {
		for _, name := range names {
			header = append(header, "preds_class_"+name)
		}
		require.Len(t, header, 2*n)
	} else {
		header = append(header, "preds_class")
	}
	require.Equal(t, header, rows[0], "S34: a probability is headed by its class")
	for _, row := range rows[1:] {
		a := answered{labels: []string{}}
		for k, cell := range row {
			switch {
			case strings.HasPrefix(header[k], "preds_probability_"):
				a.probabilities = append(a.probabilities, must.M1(strconv.ParseFloat(cell, 64)))
			case header[k] == "preds_class":
				a.labels = append(a.labels, cell)
			case cell == "1":
				a.labels = append(a.labels, strings.TrimPrefix(header[k], "preds_class_"))
			}
		}
		all = append(all, a)
	}
	return all
}

func ofJSON(t *testing.T, model string, flat []float32, kind string, names []string) (all []answered) {
	var text strings.Builder
	for i := 0; i < len(flat); i += 2 {
		fmt.Fprintf(&text, "{\"x\":[%v,%v]}\n", flat[i], flat[i+1])
	}
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	r := run(t, "model", "predict", model, path)
	require.Zero(t, r.code, r.stderr)
	for line := range strings.Lines(r.stdout) {
		var row struct {
			Probability map[string]float64 `json:"preds_probability"`
			Class       any                `json:"preds_class"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		a := answered{labels: []string{}}
		for _, name := range shown(kind, names) {
			a.probabilities = append(a.probabilities, row.Probability[name])
		}
		switch class := row.Class.(type) {
		case string:
			a.labels = append(a.labels, class)
		case []any:
			for _, name := range class {
				a.labels = append(a.labels, name.(string))
			}
		}
		all = append(all, a)
	}
	return all
}

func ofServer(t *testing.T, m *flaxlike.Model, flat []float32, kind string, names []string) (all []answered) {
	b := must.M1(serve.New(m, data.Batch{Fields: []data.Field{data.X(flat[:2], 1, 2)}}, serve.Batching{}))
	defer b.Close()
	require.NoError(t, b.Warm(t.Context()))
	server := httptest.NewServer(must.M1(serve.NewHandler(map[string]*serve.Batcher{"m": b}, serve.Options{})))
	defer server.Close()
	body := must.M1(json.Marshal(map[string]any{"inputs": []any{map[string]any{"name": "x", "datatype": "FP32", "shape": []int{len(flat) / 2, 2}, "data": flat}}}))
	answer := must.M1(http.Post(server.URL+"/v2/models/m/infer", "application/json", strings.NewReader(string(body))))
	defer answer.Body.Close()
	text := must.M1(io.ReadAll(answer.Body))
	require.Equal(t, http.StatusOK, answer.StatusCode, string(text))
	var said struct {
		Outputs []struct {
			Name, Datatype string
			Data           []any
		}
	}
	require.NoError(t, json.Unmarshal(text, &said))
	require.Len(t, said.Outputs, 2)
	require.Equal(t, "preds_class", said.Outputs[0].Name)
	require.Equal(t, "BYTES", said.Outputs[0].Datatype)
	rows := len(flat) / 2
	width := len(said.Outputs[1].Data) / rows
	for i := range rows {
		a := answered{labels: []string{}}
		for k := range width {
			a.probabilities = append(a.probabilities, said.Outputs[1].Data[i*width+k].(float64))
			if kind == "multi-label" && said.Outputs[0].Data[i*width+k] != "" {
				require.Equal(t, names[k], said.Outputs[0].Data[i*width+k])
				a.labels = append(a.labels, names[k])
			}
		}
		if kind != "multi-label" {
			a.labels = append(a.labels, said.Outputs[0].Data[i].(string))
		}
		all = append(all, a)
	}
	return all
}
