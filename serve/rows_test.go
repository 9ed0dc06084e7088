package serve_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/serve"
)

// weighing is a predictor of tables: it answers the prepared inputs' sums, and a class.
type weighing struct{ p *tables.Preparation }

func (w weighing) Preparation() *tables.Preparation { return w.p }

func (w weighing) OutputClasses() map[string][]string {
	return map[string][]string{"kind": {"cow", "fish"}}
}

func (w weighing) InputNames() []string {
	inputs, _ := w.p.Columns()
	return inputs
}

func (w weighing) Answer(_ context.Context, batch data.Batch) (map[string]data.Array, error) {
	b, err := w.p.Inputs(batch)
	if err != nil {
		return nil, errorOfInput{err}
	}
	x := b.Fields[0].Array
	n, width := x.Len(), x.Size()/x.Len()
	sums, odds, classes := make([]float32, n), make([]float32, 2*n), make([]string, n)
	for i, v := range x.Flat.([]float32) {
		sums[i/width] += v * max(1, v/1e38) * max(1, v/1e38)
	}
	for i, sum := range sums {
		odds[2*i], odds[2*i+1], classes[i] = 0.25, 0.75, map[bool]string{true: "fish", false: "cow"}[sum > 2]
	}
	return map[string]data.Array{"sum": {Flat: sums, Dims: []int{n}}, "kind_probability": {Flat: odds, Dims: []int{n, 2}}, "kind_class": {Flat: classes, Dims: []int{n}}}, nil
}

type errorOfInput struct{ error }

func (e errorOfInput) Is(target error) bool { return target == serve.ErrInput }

func tabular(t *testing.T) *serve.Handler {
	t.Helper()
	table := must.M1(tables.Read(strings.NewReader("mass,place,kind\n1,sea,fish\n,land,cow\n3,sea,fish\n"), tables.Format{Texts: true}))
	p := must.M1(tables.Fit(table, tables.Numbers{Columns: []string{"mass"}, Fill: tables.FillMean}, tables.Categories{Columns: []string{"place"}},
		tables.Labels{Columns: []string{"kind"}}))
	inputs := []serve.Tensor{{Name: "mass", DType: "string", Dims: []int{}}, {Name: "place", DType: "string", Dims: []int{}}}
	handler(t, p, must.M1(data.Peek(table.Batches(2).All())), inputs)
	return handler(t, p, data.Batch{}, inputs)
}

func handler(t *testing.T, p *tables.Preparation, example data.Batch, inputs []serve.Tensor) *serve.Handler {
	b := must.M1(serve.New(weighing{p}, example, serve.Batching{MaxBatch: 4}))
	t.Cleanup(func() { _ = b.Close() })
	require.NoError(t, b.Warm(t.Context()))
	require.Equal(t, inputs, b.Inputs())
	return must.M1(serve.NewHandler(map[string]*serve.Batcher{"m": b}, serve.Options{MaxBody: 2000}))
}

func postRows(h *serve.Handler, kind, body string) (int, string) {
	w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/v2/models/m/rows", strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// Rows of JSON and of CSV have one answer; a row that does not fit is an error, with little of the client's text.
func TestRows(t *testing.T) {
	h := tabular(t)
	answer := func(sum, class string) string {
		return `{"kind_class":"` + class + `","kind_probability":{"cow":0.25,"fish":0.75},"sum":[` + sum + `]}`
	}
	sea, land := answer("4", "fish"), answer("3", "fish")
	for _, row := range [][3]string{
		{"application/json", `{"mass":3,"place":"sea"}`, "[" + sea + "]"},
		{"", ` [{"place":"sea","mass":"3.0"},{"mass":null,"place":"land","kind":"cow"}]`, "[" + sea + "," + land + "]"},
		{"text/csv; charset=utf-8", "place,kind,mass,size\nsea,fish,3,4\nland,,,\n", "[" + sea + "," + land + "]"},
	} {
		status, text := postRows(h, row[0], row[1])
		require.Equal(t, 200, status, text)
		require.JSONEq(t, row[2], text)
	}
	long := strings.Repeat("x", 500)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("mass,place\n1,sea\n"))
	require.NoError(t, z.Close())
	for _, row := range []struct {
		kind, body string
		status     int
		want       string
	}{
		{"", `{"mass":3}`, 400, `row 1: there is no column "place", fitted as a one-hot`},
		{"", `{"mass":3,"place":"sea","` + long + `":1}`, 400, `has no column "xxx`},
		{"", `{"mass":3,"place":"` + long + `"}`, 400, `column "place": row 1: "xxx`},
		{"", `{"mass":3,"mass":3,"place":"sea"}`, 400, `a row has "mass" twice`},
		{"", `{"a":1,"b":1,"c":1,"d":1,"e":1}`, 400, `row 1: the preparation has no column "a"; there are ["kind" "mass" "place"]`},
		{"", `{"mass":[1],"place":"sea"}`, 400, `the value of "mass" is a list or an object, expected a number`},
		{"", `{"mass":{},"place":"sea"}`, 400, `the value of "mass" is a list or an object`},
		{"", `{"mass":1,"place":"sea","size":[[1,2],{}]}`, 400, `has no column "size"`},
		{"", `{"mass":"heavy","place":"sea"}`, 400, `"heavy" is not a number`},
		{"", `{"mass":3,"place":"sea"} 4`, 400, "there is text after the JSON object"},
		{"", `[{"mass":3,"place":"sea"}`, 400, "unexpected end of the JSON"},
		{"", `[]`, 400, "there are no rows"},
		{"", `[3]`, 400, "the body: a row is a number, expected an object"},
		{"", ``, 400, "unexpected end of the JSON"},
		{"", "{\"mass\":\"\xff\",\"place\":\"sea\"}", 400, "it is not UTF-8"},
		{"", "[" + strings.Repeat(`{"mass":3,"place":"sea"},`, 4) + `{"mass":3,"place":"sea"}]`, 413, "expected 1 to 4 rows"},
		{"", `{"mass":"` + strings.Repeat("x", 2000) + `"}`, 413, "more than 2000 bytes"},
		{"text/csv", "mass,place\n" + strings.Repeat("1,sea\n", 5), 413, "too many examples"},
		{"text/csv", "mass\n1\n", 400, `there is no "place"`},
		{"text/csv", "mass,size," + long + "\n1,sea,2\n", 400, `there is no "place": expected`},
		{"text/csv", "mass,place\n", 400, "the body: "},
		{"text/csv", packed.String(), 400, "it is gzip, expected text"},
	} {
		status, text := postRows(h, row.kind, row.body)
		var said map[string]string
		require.NoError(t, json.Unmarshal([]byte(text), &said), text)
		require.Equal(t, row.status, status, text)
		require.Contains(t, said["error"], row.want)
		require.LessOrEqual(t, strings.Count(text, "x"), 205, "little of the client's text: %s", text)
	}
	status, text := postRows(h, "", `[{"mass":3,"place":"sea"},{"mass":3e38,"place":"sea"}]`)
	require.Equal(t, 500, status)
	require.Contains(t, text, `row 2: the output \"sum\" has Infinity, which JSON cannot represent`)
	other, _ := server(t, serve.Options{})
	status, text, _ = call(other, "POST", "/v2/models/sums/rows", "{}")
	require.Equal(t, 404, status)
	require.Contains(t, text, `model \"sums\" has no preparation for rows of a table`)
}

// A window is a list of the model's length for each axis: other values are refused before they are kept.
func TestRows_ofWindows(t *testing.T) {
	table := must.M1(data.New(data.Named("mass", []float32{1, 2, 3, 4, 5, 6}, 2, 3), data.Named("place", []string{"sea", "land", "sea", "sea", "land", "sea"}, 2, 3),
		data.Named("next mass", []float32{1, 2, 3, 4}, 2, 2)))
	p := must.M1(tables.Fit(table, tables.Numbers{Columns: []string{"mass"}, Fill: tables.FillMean}, tables.Categories{Columns: []string{"place"}, Field: "w"},
		tables.Labels{Columns: []string{"next mass"}, Numbers: true}))
	h := handler(t, p, data.Batch{}, []serve.Tensor{{Name: "mass", DType: "string", Dims: []int{3}}, {Name: "place", DType: "string", Dims: []int{3}}})
	long := "[" + strings.Repeat("7, ", 100) + "7]" // longer ones are read apart from other JSON
	for body, want := range map[string]string{
		`[{"mass":[1,"2",null],"place":["sea","sea","land"],"next mass":[8,9]},{"mass":[10,20.5,30],"place":["sea","sea","land"],"next mass":` + long + `}]`: `6.5 60.5`,
		`{"mass":[1000000000000000000000000,     2.0000000000000000000000000,   0.000000000000000000],"place":["sea","sea","land"]}`:                         `1e+24`,
		`{"mass":[1,2],"place":["sea","sea","land"]}`:            `the value is a list of 2, expected one of 3`,
		`{"mass":[1,2,3,4],"place":["sea","sea","land"]}`:        `the value of "mass" has a list of more than 3`,
		`{"mass":` + long + `,"place":["sea","sea","land"]}`:     `the value of "mass" has a list of more than 3`,
		`{"mass":[1,2,[3]],"place":["sea","sea","land"]}`:        `the value of "mass" is a list or an object, expected a number`,
		`{"mass":[1,2,3],"place":"sea"}`:                         `the value of "place" is not a list, expected one of 3`,
		`{"mass":[1,2,{"a":1}],"place":["sea","sea","land"]}`:    `the value of "mass" is a list or an object`,
		`{"mass":[1,2,3],"place":["sea","sea","land"],"x":[[]]}`: `has no column "x"`,
	} {
		status, text := postRows(h, "", body)
		if strings.ContainsAny(want[:1], "0123456789") {
			require.Equal(t, 200, status, text)
			for _, sum := range strings.Fields(want) {
				require.Contains(t, text, `"sum":[`+sum+`]`)
			}
			continue
		}
		var said map[string]string
		require.NoError(t, json.Unmarshal([]byte(text), &said), text)
		require.Equal(t, 400, status, text)
		require.Contains(t, said["error"], want)
	}
}

// In an inference the columns of a model with a preparation are texts, in JSON or as bytes; the answer is the same.
func TestInfer_ofColumns(t *testing.T) {
	h := tabular(t)
	column := func(name, texts string) string {
		return `{"name":"` + name + `","datatype":"BYTES","shape":[2],"data":` + texts + `}`
	}
	infer := func(inputs string) (int, string) {
		status, text, _ := call(h, "POST", "/v2/models/m/infer", `{"outputs":[{"name":"sum"}],"inputs":[`+inputs+`]}`)
		return status, text
	}
	status, text := infer(column("place", `["sea", "land"]`) + "," + column("mass", `["3",""]`))
	require.Equal(t, 200, status, text)
	require.Contains(t, text, `"data":[4,3]`)
	for texts, want := range map[string]string{`["3"]`: "has 1 elements or more, and its shape [2] means 2", `["3",null]`: "expected a list of numbers", `[3,4]`: "not a flat list of texts",
		`[["3"],["4"]]`: "expected a list of numbers"} {
		status, text := infer(column("place", `["sea","land"]`) + "," + column("mass", texts))
		require.Equal(t, 400, status, text)
		require.Contains(t, text, want)
	}
	status, text = infer(column("place", `["sea","air"]`) + "," + column("mass", `["3","4"]`))
	require.Equal(t, 400, status, text)
	require.Contains(t, text, `column \"place\": row 2: \"air\" is not a class`)

	bytesOf := func(texts ...string) (all string) {
		for _, t := range texts {
			all += string(binary.LittleEndian.AppendUint32(nil, uint32(len(t)))) + t
		}
		return all
	}
	for n, want := range map[string]string{bytesOf("3", ""): `"data":[4,3]`, bytesOf("3"): "not 2 texts", bytesOf("3", "4", "5"): "not 2 texts", "\xff\xff\xff\xff": "not 2 texts", bytesOf("3", "\xff"): "not 2 texts"} {
		head := must.M1(json.Marshal(map[string]any{"outputs": []any{map[string]any{"name": "sum"}}, "inputs": []any{
			map[string]any{"name": "mass", "datatype": "BYTES", "shape": []int{2}, "parameters": map[string]any{"binary_data_size": len(n)}},
			map[string]any{"name": "place", "datatype": "BYTES", "shape": []int{2}, "data": []string{"sea", "land"}}}}))
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/v2/models/m/infer", strings.NewReader(string(head)+n))
		r.Header.Set("Inference-Header-Content-Length", strconv.Itoa(len(head)))
		h.ServeHTTP(w, r)
		require.Contains(t, w.Body.String(), want)
	}
}
