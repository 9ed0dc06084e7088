package main_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
)

// A saved model without a preparation answers rows of CSV and of JSON; a row that does not fit is an error by its line,
// and a model whose preparation this version cannot read is not fed with numbers as they are.
func TestModelPredict(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "m.safetensors")
	p := must.M1(tables.Fit(must.M1(data.New(data.Named("a", []float32{1}, 1), data.Named("b", []float32{1}, 1), data.Named("c", []float32{1}, 1))), tables.Numbers{}))
	m, err := flaxlike.Open(t.Context(), savedModel, flaxlike.WithPreparation(p), flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))))
	require.NoError(t, err)
	defer m.Close()
	again, err := flaxlike.New(t.Context(), nn.Sequential{nn.Dense{Units: 4}, nn.Activation("relu"), nn.Dropout{Rate: 0.2}, nn.Dense{Units: 3}},
		flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))), flaxlike.WithClasses([]string{"ant", "bee", "cat"}), flaxlike.WithLoss("sparse_categorical_crossentropy"))
	require.NoError(t, err)
	defer again.Close()
	rows := must.M1(data.New(data.X([]float32{1, 0, 0, 0, 0, 1.2}, 2, 3)))
	require.NoError(t, again.Init(t.Context(), must.M1(data.Peek(rows.Batches(2).All()))))
	_, err = again.CopyFrom(t.Context(), m, nil)
	require.NoError(t, err)
	require.NoError(t, again.Save(model))
	want := must.M1(must.M1(again.Predict(t.Context(), rows)).Probabilities()).Flat.([]float32)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	r := run(t, "model", "predict", model, write("rows.csv", "a,b,c\n1,0,0\n0,0,1.2\n"))
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, fmt.Sprintf("preds_probability_ant,preds_probability_bee,preds_probability_cat,preds_class\n%v,%v,%v,bee\n%v,%v,%v,cat\n", want[0], want[1], want[2], want[3], want[4], want[5]), r.stdout)
	given := r.stdout
	r = run(t, "model", "predict", model, write("rows.csv", "\n1,0,0\n0,0,1.2\n"))
	require.Equal(t, given, r.stdout, "row 1 of numbers is an example: "+r.stderr)
	for _, row := range []string{"0,1,2", "1,2,3", "1,,0", "a,0,0"} {
		r = run(t, "model", "predict", model, write("rows.csv", row+"\n1,0,0\n"))
		require.Contains(t, r.stderr, "it may be an example or a header: put a line of names before it")
	}
	r = run(t, "model", "predict", model, write("rows.jsonl", `{"x":[1,0,0]}`+"\n"))
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, `"preds_class":"bee"`)
	for text, of := range map[string]string{`{"x":[1,0]}`: `field "x" is float32[2] for an example, and was float32[3] when the network was built`,
		`{"x":[]}`: `line 1: "x": 0 values, expected dims [3]`, `{"y":[1]}`: `line 1: the field "x" is missing, got ["y"]`,
		`{"x":[1,0,0],"z":1}`: `line 1: got the field ["z"], which the model does not take`, ``: "there are no rows",
		`{"x":["1",0,0]}`: `line 1: "x": it has a JSON string, expected float32`, `{"x":1}`: `line 1: "x": it has a JSON number, expected an array of dims [3]`,
		`3`: `line 1: it has a JSON number, expected an object with a value for each input, as {"x": …}`} {
		r = run(t, "model", "predict", model, write("bad.jsonl", text))
		require.Equal(t, 1, r.code)
		require.Contains(t, r.stderr, of)
	}
	r = asked(t, "a,b,c\n1,0,0\n", "model", "predict", model, "-")
	require.Contains(t, r.stderr, "stdin: line 1: invalid character 'a' looking for beginning of value: stdin takes lines of JSON: give the name of a file of CSV")
	r = run(t, "model", "predict", model, write("rows.jsonl", `{"x":[1,0,0]}`+"\n"+`{"x":[1,0]}`))
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "row 2 and those of its lengths: ")
	r = run(t, "model", "predict", model, write("rows.csv", "a,b,c\n1,NA,0\n1,0,0\n"))
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, ": the model takes only numbers")
	r = run(t, "model", "predict", model, write("rows.csv", "a,b\n1,0\n"))
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, `field "x" is float32[2] for an example, and was float32[3] when the network was built`)
	r = run(t, "model", "predict", savedModel, write("rows.csv", "a,b,c\n1,0,0\n"))
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "the file's preparation: read JSON: version 0, expected 1")
	r = run(t, "model", "predict", "--missing", "NA", model, write("rows.csv", "a,b,c\n1,0,0\n"))
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "--missing is for a model with a preparation")
}

// A model of sequences answers rows of other lengths than that of its training, in the file's order, as Predict does.
func TestModelPredict_otherLengths(t *testing.T) {
	dir := t.TempDir()
	model, rows := filepath.Join(dir, "m.safetensors"), filepath.Join(dir, "rows.jsonl")
	sequences := func(of ...int32) *data.Set { return must.M1(data.New(data.X(of, 1, len(of)))) }
	made := func(network nn.Layer) *flaxlike.Model {
		m := must.M1(flaxlike.New(t.Context(), network, flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))), flaxlike.WithLoss("mse")))
		t.Cleanup(func() { _ = m.Close() })
		require.NoError(t, m.Init(t.Context(), must.M1(data.Peek(sequences(1, 2, 3, 1).Batches(1).All()))))
		require.NoError(t, m.Save(model))
		return m
	}
	m := made(nn.Sequential{nn.Embedding{Vocabulary: 4, Width: 2}, nn.GlobalMeanPool{}, nn.Dense{Units: 1}})
	want := func(of ...int32) float32 {
		return must.M1(must.M1(m.Predict(t.Context(), sequences(of...))).Output()).Flat.([]float32)[0]
	}
	require.NoError(t, os.WriteFile(rows, []byte(`{"x":[1,2]}`+"\n"+`{"x":[3,1,2,2,1]}`+"\n"+`{"x":[2,2]}`), 0o600))
	r := run(t, "model", "predict", "--output", "csv", model, rows)
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, fmt.Sprintf("preds_0\n%v\n%v\n%v\n", want(1, 2), want(3, 1, 2, 2, 1), want(2, 2)), r.stdout)
	cells := filepath.Join(dir, "rows.csv")
	require.NoError(t, os.WriteFile(cells, []byte("a,b\n1,2\n2,2\n"), 0o600))
	r = run(t, "model", "predict", model, cells)
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, fmt.Sprintf("preds_0\n%v\n%v\n", want(1, 2), want(2, 2)), r.stdout)

	made(nn.Sequential{nn.Embedding{Vocabulary: 4, Width: 2}, nn.Dense{Units: 1}})
	r = run(t, "model", "predict", "--output", "csv", model, rows)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "row 2 has 5 columns of outputs, and row 1 has 2, because its inputs have other lengths: give --output json")
	r = run(t, "model", "predict", model, rows)
	require.Zero(t, r.code, r.stderr)
	require.Len(t, strings.Split(strings.TrimSpace(r.stdout), "\n"), 3)
}

// A row whose answer is infinite loses no other row: all are written, and the command ends with an error that names it.
func TestModelPredict_infiniteAnswers(t *testing.T) {
	dir := t.TempDir()
	model, rows := filepath.Join(dir, "m.safetensors"), filepath.Join(dir, "rows.csv")
	require.NoError(t, os.WriteFile(rows, []byte("a,b\n1,2\n3e38,3e38\n-3e38,-3e38\n0,1\n"), 0o600))
	const end = "2 of 4 rows have a NaN or an infinity in their answers, which are written; row 2: the output \"preds\" has Infinity"
	for loss, want := range map[string][2]string{
		"mse": {"preds_0\n3\nInfinity\n-Infinity\n1\n", `{"preds":[3]} {"preds":["Infinity"]} {"preds":["-Infinity"]} {"preds":[1]} `},
		"binary_crossentropy": {"preds_probability_yes,preds_class\n0.95257413,yes\n,\n,\n0.7310586,yes\n",
			`{"preds_class":"yes","preds_probability":{"yes":0.95257413}} {"preds_class":null,"preds_probability":null} {"preds_class":null,"preds_probability":null} ` +
				`{"preds_class":"yes","preds_probability":{"yes":0.7310586}} `},
	} {
		options := []flaxlike.Option{flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))), flaxlike.WithLoss(loss)}
		if loss != "mse" {
			options = append(options, flaxlike.WithClasses([]string{"no", "yes"}))
		}
		m := must.M1(flaxlike.New(t.Context(), nn.Dense{Units: 1, Kernel: nn.Initial("ones")}, options...))
		require.NoError(t, m.Init(t.Context(), must.M1(data.Peek(must.M1(data.New(data.X([]float32{1, 2}, 1, 2))).Batches(1).All()))))
		require.NoError(t, m.Save(model))
		require.NoError(t, m.Close())
		for i, form := range []string{"csv", "json"} {
			r := run(t, "model", "predict", "--output", form, model, rows)
			require.Equal(t, 1, r.code)
			require.Contains(t, r.stderr, end)
			if i == 1 {
				r.stdout = strings.ReplaceAll(r.stdout, "\n", " ")
			}
			require.Equal(t, want[i], r.stdout)
		}
	}
}

// scaled is a layer of a program's own.
type scaled struct{ By float64 }

func (s scaled) Apply(_ *model.Scope, x *graph.Node) *graph.Node { return graph.MulScalar(x, s.By) }

// A network with a layer of a program's own, or that is code, needs that program: the command does not advise its user
// to give Go options.
func TestModelPredict_ofAProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	set := must.M1(data.New(data.X([]float32{1, 2}, 2, 1)))
	for want, layer := range map[string]nn.Layer{
		`the network has the layer "1 scaled By=2" of its own program, so this command cannot open it: a Go program with that layer can, by flaxlike.Open and WithLayer`: scaled{2},
		"the network is code of its own program, so this command cannot open it":                                                                                         nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node { return x }),
	} {
		m := must.M1(flaxlike.New(t.Context(), nn.Sequential{nn.Dense{Units: 1}, layer}, flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t)))))
		require.NoError(t, m.Init(t.Context(), must.M1(data.Peek(set.Batches(2).All()))))
		require.NoError(t, m.Save(path))
		require.NoError(t, m.Close())
		r := run(t, "model", "predict", path, path)
		require.Equal(t, 1, r.code)
		require.Contains(t, r.stderr, want)
	}
}

// A model with a preparation answers rows of the table that it was fitted on, with texts and missing values; one
// without classes gives its numbers.
func TestModelPredict_ofATable(t *testing.T) {
	dir, strategy := t.TempDir(), flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t)))
	model := filepath.Join(dir, "m.safetensors")
	table := must.M1(data.New(data.Named("mass", []string{"1", "2", "3", ""}, 4), data.Named("place", []string{"sea", "land", "sea", "land"}, 4),
		data.Named("kind", []string{"fish", "cow", "fish", "cow"}, 4)))
	p := must.M1(tables.Fit(table, tables.Numbers{Columns: []string{"mass"}, Fill: tables.FillMean, Scale: tables.Standard},
		tables.Categories{Columns: []string{"place"}}, tables.Labels{Columns: []string{"kind"}}))
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	m := must.M1(flaxlike.New(t.Context(), nn.Dense{Units: 2}, strategy, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithPreparation(p),
		flaxlike.WithLearningRate(0.3)))
	defer m.Close()
	must.M1(m.Fit(t.Context(), table, flaxlike.Fit{Epochs: 20, Output: io.Discard}))
	require.NoError(t, m.Save(model))
	r := run(t, "model", "show", model)
	require.Zero(t, r.code, r.stderr)
	require.Regexp(t, `(?m)^preparation  of the columns mass, place; labels kind\n`, r.stdout)
	r = run(t, "model", "predict", "--missing", "NA", model, write("rows.csv", "place,mass\nsea,NA\nland,2\n"))
	require.Zero(t, r.code, r.stderr)
	require.Regexp(t, `^preds_probability_cow,preds_probability_fish,preds_class\n\S+,fish\n\S+,cow\n$`, r.stdout)
	for _, row := range [][2]string{{"rows.csv", "place,mass\nsea,NA\n"}, {"rows.jsonl", `{"place":"sea","mass":"NA"}`}} {
		failed := run(t, "model", "predict", model, write(row[0], row[1]))
		require.Equal(t, 1, failed.code)
		require.Regexp(t, `"NA" is not a number.*: if it marks a missing value, (pass it to --missing, as --missing NA|write null)\n$`, failed.stderr)
	}
	write("rows.csv", "place,mass\nsea,NA\nland,2\n")
	known := must.M1(tables.Fit(table, tables.Missing{"NA"}, tables.Numbers{Columns: []string{"mass"}, Fill: tables.FillMean, Scale: tables.Standard},
		tables.Categories{Columns: []string{"place"}}, tables.Labels{Columns: []string{"kind"}}))
	again := must.M1(flaxlike.New(t.Context(), nn.Dense{Units: 2}, strategy, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithPreparation(known)))
	defer again.Close()
	require.NoError(t, again.Init(t.Context(), must.M1(data.Peek(table.Batches(2).All()))))
	must.M1(again.CopyFrom(t.Context(), m, nil))
	require.NoError(t, again.Save(model+"2"))
	given := r.stdout
	r = run(t, "model", "predict", model+"2", filepath.Join(dir, "rows.csv"))
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, given, r.stdout)
	r = run(t, "model", "predict", model, write("rows.jsonl", `{"place":"sea","mass":null}`+"\n"+`{"place":"land","mass":2}`))
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, `"preds_class":"fish"`)
	for text, of := range map[string]string{`{"place":"air","mass":2}`: `"air"`, `{"place":"sea"}`: `"mass"`} {
		r = run(t, "model", "predict", model, write("bad.jsonl", text))
		require.Equal(t, 1, r.code)
		require.Contains(t, r.stderr, of)
	}

	tags := must.M1(data.New(append(table.Fields(), data.Named("wet", []string{"1", "0", "1", "0"}, 4), data.Named("big", []bool{false, true, false, true}, 4))...))
	p = must.M1(tables.Fit(tags, tables.Numbers{Columns: []string{"mass"}, Fill: tables.FillMean}, tables.Categories{Columns: []string{"place"}},
		tables.Labels{Columns: []string{"wet", "big"}}))
	several := must.M1(flaxlike.New(t.Context(), nn.Dense{Units: 2}, strategy, flaxlike.WithLoss("binary_crossentropy"), flaxlike.WithPreparation(p),
		flaxlike.WithLearningRate(0.3)))
	defer several.Close()
	must.M1(several.Fit(t.Context(), tags, flaxlike.Fit{Epochs: 40, Output: io.Discard}))
	require.NoError(t, several.Save(model))
	r = run(t, "model", "predict", model, write("rows.csv", "place,mass\nsea,1\nland,2\n"))
	require.Zero(t, r.code, r.stderr)
	require.Regexp(t, `^preds_probability_wet,preds_probability_big,preds_class_wet,preds_class_big\n\S+,1,0\n\S+,0,1\n$`, r.stdout)
	r = run(t, "model", "predict", model, write("rows.jsonl", `{"place":"sea","mass":1}`))
	require.Contains(t, r.stdout, `"preds_class":["wet"]`)

	numbers := must.M1(flaxlike.New(t.Context(), nn.Dense{Units: 1}, strategy, flaxlike.WithLoss("mse")))
	defer numbers.Close()
	require.NoError(t, numbers.Init(t.Context(), data.Batch{Fields: []data.Field{data.X(make([]float32, 6), 2, 3)}, Size: 2}))
	require.NoError(t, numbers.Save(model))
	r = run(t, "model", "predict", model, write("rows.csv", "a,b,c\n0,0,0\n"))
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, "preds_0\n0\n", r.stdout)
}

// An image is answered as the array that images.Read makes of it; another size is an error.
func TestModelPredict_image(t *testing.T) {
	dir := t.TempDir()
	saved := func(name string, dims ...int) string {
		m := must.M1(flaxlike.New(t.Context(), nn.Sequential{nn.Flatten{}, nn.Dense{Units: 2, Kernel: nn.Constant(0.5)}}, flaxlike.WithLoss("mse"),
			flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t)))))
		defer m.Close()
		require.NoError(t, m.Init(t.Context(), data.Batch{Fields: []data.Field{data.X(make([]float32, 6), dims...)}}))
		require.NoError(t, m.Save(filepath.Join(dir, name)))
		return filepath.Join(dir, name)
	}
	model := saved("m.safetensors", 1, 2, 3, 1)
	of := func(width int) string {
		picture := image.NewGray(image.Rect(0, 0, width, 2))
		picture.SetGray(1, 1, color.Gray{255})
		picture.SetGray(2, 0, color.Gray{51})
		var file bytes.Buffer
		require.NoError(t, png.Encode(&file, picture))
		return inFolder(t, dir, fmt.Sprint("wide ", width, ".PNG"), file.String())
	}
	r := run(t, "model", "predict", model, of(3))
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, "preds_0,preds_1\n0.6,0.6\n", r.stdout)
	r = run(t, "model", "predict", model, of(4))
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "the image has 2 x 4 pixels (height, width), expected 2 x 3: resize the image as those of the training were")
	r = run(t, "model", "predict", saved("row.safetensors", 1, 6), of(3))
	require.Contains(t, r.stderr, "the model takes [{x float32 [6]}], and an image is one input float32 [height, width, channels]")
}
