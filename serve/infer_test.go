package serve_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/serve"
)

// Binary tensors come and go in the order of the inputs and outputs, little endian, and others as JSON.
func TestHandler_binaryTensors(t *testing.T) {
	flat := []any{[]bool{true, false}, []int8{-128, 127}, []int16{-1 << 15, 1<<15 - 1}, []int32{-1 << 31, 1<<31 - 1}, []int64{math.MinInt64, math.MaxInt64},
		[]uint8{0, 255}, []uint16{0, 1<<16 - 1}, []uint32{0, 1<<32 - 1}, []uint64{0, math.MaxUint64},
		[]float32{1e-7, float32(math.Inf(1))}, []float64{1e-300, math.Inf(-1)}}
	names := []string{"BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "FP32", "FP64"}
	var fields []data.Field
	var inputs, outputs []string
	var sent []byte
	for i, f := range flat {
		name := fmt.Sprintf("t%02d", i)
		fields = append(fields, data.Named(name, f, 2))
		of, err := binary.Append(nil, binary.LittleEndian, f)
		require.NoError(t, err)
		sent = append(sent, of...)
		inputs = append(inputs, fmt.Sprintf(`{"name":%q,"shape":[2],"datatype":%q,"parameters":{"binary_data_size":%d}}`, name, names[i], len(of)))
		outputs = append(outputs, fmt.Sprintf(`{"name":%q,"datatype":%q,"shape":[2],"parameters":{"binary_data_size":%d}}`, name, names[i], len(of)))
	}
	echo := serve.Func(func(_ context.Context, batch data.Batch) (map[string]data.Array, error) {
		out := map[string]data.Array{"words": {Flat: []string{"a", "ünd"}[:batch.Fields[0].Array.Len()], Dims: []int{batch.Fields[0].Array.Len()}}}
		for _, f := range batch.Fields {
			out[f.Name] = f.Array
		}
		return out, nil
	})
	b, err := serve.New(echo, data.Batch{Fields: fields}, serve.Batching{MaxBatch: 2})
	require.NoError(t, err)
	defer b.Close()
	h, err := serve.NewHandler(map[string]*serve.Batcher{"echo": b}, serve.Options{})
	require.NoError(t, err)
	post := func(text, header string, binary []byte) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/v2/models/echo/infer", io.MultiReader(strings.NewReader(text), bytes.NewReader(binary)))
		r.Header.Set("Inference-Header-Content-Length", header)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	text := `{"parameters":{"binary_data_output":true},"inputs":[` + strings.Join(inputs, ",") + `]}`
	w := post(text, fmt.Sprint(len(text)), sent)
	require.Equal(t, 200, w.Code, w.Body)
	n := 0
	_, err = fmt.Sscan(w.Header().Get("Inference-Header-Content-Length"), &n)
	require.NoError(t, err)
	require.Equal(t, "application/octet-stream", w.Header().Get("Content-Type"))
	answer, rest := w.Body.String()[:n], w.Body.String()[n:]
	require.JSONEq(t, `{"model_name":"echo","model_version":"1","outputs":[`+strings.Join(outputs, ",")+`,{"name":"words","datatype":"BYTES","shape":[2],"parameters":{"binary_data_size":13}}]}`, answer)
	require.Equal(t, string(sent)+"\x01\x00\x00\x00a\x04\x00\x00\x00ünd", rest)

	// The outputs' own parameters come first, wherever those of the request are.
	text = `{"outputs":[{"name":"t01"},{"name":"t00","parameters":{"binary_data":false}}],"inputs":[` + strings.Join(inputs, ",") + `],"parameters":{"binary_data_output":true}}`
	w = post(text, fmt.Sprint(len(text)), sent)
	require.Equal(t, 200, w.Code, w.Body)
	require.True(t, strings.HasSuffix(w.Body.String(), `{"name":"t00","datatype":"BOOL","shape":[2],"data":[true,false]}]}`+"\x80\x7f"), w.Body)

	for want, row := range map[string]struct {
		header string
		sent   []byte
	}{
		"is \\\"-1\\\", expected a number of bytes":                 {"-1", sent},
		"expected a number of bytes up to":                          {fmt.Sprint(len(text) + len(sent) + 1), sent},
		"binary data more than its inputs":                          {fmt.Sprint(len(text)), append(sent, 0)},
		"binary_data_size is 16, and 15 bytes are left in the body": {fmt.Sprint(len(text)), sent[:len(sent)-1]},
		"the body: there is text after":                             {fmt.Sprint(len(text) + 1), sent},
		"the body: unexpected end of the JSON":                      {fmt.Sprint(len(text) - 1), sent},
	} {
		w := post(text, row.header, row.sent)
		require.Equal(t, 400, w.Code)
		require.Contains(t, w.Body.String(), want)
	}
	both := strings.Replace(text, `"parameters":{"binary_data_size":2}`, `"parameters":{"binary_data_size":2},"data":[true,false]`, 1)
	w = post(both, fmt.Sprint(len(both)), sent)
	require.Equal(t, 400, w.Code)
	require.Contains(t, w.Body.String(), `input \"t00\" has data and binary_data_size, or neither`)
}

// The error of an output fails only the requests for it; a request for no output by name gets all, or the error.
func TestInfer_anErrorOfOneOutput(t *testing.T) {
	x := data.Batch{Fields: []data.Field{data.X([]float32{0}, 1)}}
	of := serve.Func(func(_ context.Context, batch data.Batch) (map[string]data.Array, error) {
		a := batch.Fields[0].Array
		return map[string]data.Array{"good": a}, graphs.OutputErrors{"bad": fmt.Errorf("%w: no logarithm", serve.ErrInput)}
	})
	b, err := serve.New(of, x, serve.Batching{MaxBatch: 1})
	require.NoError(t, err)
	defer b.Close()
	h, err := serve.NewHandler(map[string]*serve.Batcher{"m": b}, serve.Options{})
	require.NoError(t, err)
	for outputs, want := range map[string]struct {
		status int
		answer string
	}{
		`"outputs":[{"name":"good"}],`:                {200, `{"model_name":"m","model_version":"1","id":"7","outputs":[{"name":"good","datatype":"FP32","shape":[1],"data":[2.5]}]}`},
		`"outputs":[{"name":"good"},{"name":"bad"}],`: {400, "no logarithm"},
		`"outputs":[{"name":"other"}],`:               {400, `there is no output \"other\"; there are [\"good\"]`},
		``:                                            {400, "no logarithm"},
	} {
		status, answer, _ := call(h, "POST", "/v2/models/m/infer", `{"id":"7",`+outputs+`"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[2.5]}]}`)
		require.Equal(t, want.status, status, "%s: %s", outputs, answer)
		require.Contains(t, answer, want.answer)
	}
}
