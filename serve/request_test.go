package serve_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/serve"
)

// unseen discards an answer, so that it is not measured.
type unseen struct {
	header http.Header
	status int
}

func (u *unseen) Header() http.Header         { return u.header }
func (u *unseen) WriteHeader(status int)      { u.status = status }
func (u *unseen) Write(b []byte) (int, error) { return len(b), nil }

// allocated returns the status of a request and the bytes that it allocated, those that were freed included.
func allocated(h http.Handler, path, body string) (status int, size uint64) {
	w, r := &unseen{header: http.Header{}}, httptest.NewRequest("POST", path, strings.NewReader(body))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h.ServeHTTP(w, r)
	runtime.ReadMemStats(&after)
	return w.status, after.TotalAlloc - before.TotalAlloc
}

// hostile returns bodies of about n bytes, each of one kind, that mean little and might cost much.
func hostile(n int) map[string]string {
	many := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			if strings.Contains(format, "%") {
				fmt.Fprintf(&b, format, i)
			} else {
				b.WriteString(format)
			}
		}
		return b.String()
	}
	x := `{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[1,2,3,4]}`
	in := func(rest string) string { return `{"inputs":[` + x + `,` + flags + rest }
	return map[string]string{
		"outputs of one name":    in(`],"outputs":[` + many(`{"name":"sum"}`) + `]}`),
		"outputs of many names":  in(`],"outputs":[` + many(`{"name":"%d"}`) + `]}`),
		"inputs of one name":     in(`,` + many(x) + `]}`),
		"inputs of many names":   `{"inputs":[` + many(`{"name":"%d","shape":[1],"datatype":"BOOL","data":[true]}`) + `]}`,
		"small inputs":           `{"inputs":[` + many(`{}`) + `]}`,
		"members":                `{` + many(`"%d":0`) + `}`,
		"members of one name":    `{` + many(`"a":0`) + `}`,
		"parameters":             in(`],"parameters":{` + many(`"%d":0`) + `}}`),
		"lists":                  strings.Repeat("[", n),
		"lists in data":          `{"inputs":[{"name":"x","data":` + strings.Repeat("[", n),
		"whole lists":            in(`],"a":` + strings.Repeat("[", n/2) + strings.Repeat("]", n/2) + `}`),
		"short lists":            in(`],"a":[` + many(`[]`) + `]}`),
		"lists just long enough": in(`],"a":[` + many(`[`+strings.Repeat("1,", 32)+`1]`) + `]}`),
		"objects":                strings.Repeat(`{"a":`, n/5),
		"a string":               `{"id":"` + strings.Repeat("a", n) + `"}`,
		"an id":                  in(`],"id":"` + strings.Repeat(`\u00e4`, n/6) + `"}`),
		"a string without end":   `{"id":"` + strings.Repeat(`\"`, n/2),
		"a name":                 `{"inputs":[{"name":"` + strings.Repeat("é", n/2) + `","shape":[1],"datatype":"BOOL","data":[true]}]}`,
		"a datatype":             `{"inputs":[{"name":"x","shape":[1],"datatype":"` + strings.Repeat("F", n) + `","data":[true]}]}`,
		"a shape":                `{"inputs":[{"name":"x","shape":[` + many("1") + `],"datatype":"FP32","data":[1]}]}`,
		"a shape that is large":  `{"inputs":[{"name":"x","shape":[2000000000,2,2],"datatype":"FP32","data":[` + many("1") + `]}]}`,
		"data":                   `{"inputs":[{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[` + many("1") + `]},` + flags + `]}`,
		"data of texts":          `{"inputs":[{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[` + many(`"a"`) + `]}]}`,
		"a number":               `{"inputs":[{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[1` + strings.Repeat("0", n) + `,1,1,1]},` + flags + `]}`,
		"an output":              in(`],"outputs":[{"name":"` + strings.Repeat("a", n) + `"}]}`),
		"spaces":                 strings.Repeat(" ", n) + in("]}"),
		"null bytes":             strings.Repeat("\x00", n),
	}
}

// S43: an output that is named many times was encoded as many times, and 233 kB of request took 3.5 GB. S44: many input
// names cost their square. A request takes at most 16 times its size and 1 MiB, whatever it is.
//
//lazo:norace
func TestS43S44_memoryOfARequest(t *testing.T) {
	const size = 200_000
	h, b := server(t, serve.Options{})
	require.NoError(t, b.Warm(t.Context()))
	for kind, text := range hostile(size) {
		status, used := allocated(h, "/v2/models/sums/infer", text)
		require.Less(t, used, uint64(16*len(text)+1<<20), kind)
		require.Contains(t, []int{200, 400, 413}, status, kind)
		t.Logf("%s: %.1f times its size", kind, float64(used)/float64(len(text)))
	}
}

// S56: the text of a list bounds its memory, not the shape, which a short request may state of a large input.
//
//lazo:norace
func TestS43_memoryOfAShape(t *testing.T) {
	const wide = 1 << 22
	b, err := serve.New(serve.Func(sums), data.Batch{Fields: []data.Field{data.X(make([]float32, wide), 1, wide)}}, serve.Batching{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	h, err := serve.NewHandler(map[string]*serve.Batcher{"wide": b}, serve.Options{})
	require.NoError(t, err)
	status, used := allocated(h, "/v2/models/wide/infer", fmt.Sprintf(`{"inputs":[{"name":"x","shape":[1,%d],"datatype":"FP32","data":[1]}]}`, wide))
	require.Equal(t, http.StatusBadRequest, status)
	require.Less(t, used, uint64(1<<20))
}

// S43, S44: what a model does not take, or not twice, is refused before any element is read. The race detector has
// memory of its own.
//
//lazo:norace
func TestS43_refusesBeforeItReads(t *testing.T) {
	h, b := server(t, serve.Options{})
	require.NoError(t, b.Warm(t.Context()))
	large := strings.Repeat("1,", 1<<20) + "1"
	x := `{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[1,2,3,4]}`
	for _, row := range []struct{ text, want string }{
		{`{"inputs":[` + x + `,` + flags + `],"outputs":[{"name":"sum"},{"name":"flag"},{"name":"sum"}]}`, `output "sum" appears twice`},
		{`{"inputs":[` + x + `,` + flags + `],"outputs":[{"name":"other"}]}`, `there is no output "other"; there are ["flag" "sum"]`},
		{`{"inputs":[{"name":"z","shape":[1],"datatype":"FP32","data":[` + large + `]}]}`, `there is no input "z"`},
		{`{"inputs":[{"name":"x","shape":[4,2,2],"datatype":"FP64","data":[` + large + `]}]}`, `"x" is float64 [4 2 2]: expected float32 [batch, 2, 2]`},
		{`{"inputs":[{"name":"x","shape":[400,2,2],"datatype":"FP32","data":[` + large + `]}]}`, `"x" has 400, expected 1 to 4`},
		{`{"inputs":[{"data":[` + large + `],"datatype":"FP32","shape":[2,2,2],"name":"x"},` + flags + `]}`, `"flag" has 1 examples, and "x" has 2`},
		{`{"inputs":[` + x + `,` + x + `]}`, `input "x" appears twice`},
		{`{"inputs":[` + x + `,` + flags + `],"outputs":[{"name":"sum","parameters":{"classification":3}}]}`, `the parameter classification is not supported`},
	} {
		status, answer, _ := call(h, "POST", "/v2/models/sums/infer", row.text)
		require.Contains(t, []int{400, 413}, status, answer)
		var said map[string]string
		require.NoError(t, json.Unmarshal([]byte(answer), &said))
		require.Contains(t, said["error"], row.want)
		_, used := allocated(h, "/v2/models/sums/infer", row.text)
		require.Less(t, used, uint64(5*len(row.text)+1<<17), "no elements: %s", row.want)
	}
}

// S47: what is not JSON, or has a member twice, is refused.
func TestS47_strictJSON(t *testing.T) {
	h, b := server(t, serve.Options{})
	require.NoError(t, b.Warm(t.Context()))
	long := strings.Repeat("0,", 2000)
	for _, text := range []string{
		`{"inputs":[{"name":"x","shape":[1,2,2],"datatype":"FP32","data" [1,2,3,4]},` + flags + `]}`,
		`{"inputs":[{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[1,2,3,4]},` + flags + `]} {}`,
		`{"inputs":[{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[1,2,3,4]},` + flags + `]`,
		`{"inputs":[{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[1,2,3,4],},` + flags + `]}`,
		`{"inputs":[{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[1,2,3,4],"data":[5,6,7,8]},` + flags + `]}`,
		`{"inputs":[{"name":"x","shape":[1,2,2],"datatype":"FP32","data:list":0},` + flags + `]}`,
		`{"inputs":[{"name":"x","shape":[1,2,2],"datatype":"FP32","Data":[1,2,3,4]},` + flags + `]}`,
		`{"inputs":[{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[1,2,3,4]},` + flags + `],"inputs":[]}`,
		`{"inputs":[{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[1,2,3,4]},` + flags + `],"a":01}`,
		"{\"inputs\":[{\"name\":\"x\",\"shape\":[1,2,2],\"datatype\":\"FP32\",\"data\":[1,2,3,4]}," + flags + "],\"id\":\"\xff\"}",
		"\ufeff" + `{"inputs":[{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[1,2,3,4]},` + flags + `]}`,
		`{"inputs":[{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[1,2,3,4]},` + flags + `],"parameters":{"a":1,"a":2}}`,
		`{"inputs":[{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[]},` + flags + `],"a":[1,2,3,4` + strings.Repeat(" ", 64) + `]}`,
		`{"inputs":[{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[1,2,3,4]},` + flags + `],"outputs":[` + long + `0]}`,
	} {
		status, answer, _ := call(h, "POST", "/v2/models/sums/infer", text)
		require.Equal(t, 400, status, "%s: %s", text, answer)
	}
	for _, number := range []string{"+1", ".5", "01", "1.", "1e", "-", "1e+", "--1", "0x1", "1_0", "Inf", "NaN", "1 1", "1,,1", "1]", "[1", "'1'", "tru", "nul", "1\v"} {
		for _, around := range []string{"", long} { // those that are cut out too
			text := `{"inputs":[{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[` + around + `1,2,` + number + `,4]},` + flags + `]}`
			require.False(t, json.Valid([]byte(text)))
			status, answer, _ := call(h, "POST", "/v2/models/sums/infer", text)
			require.Equal(t, 400, status, "%s: %s", text, answer)
			require.Contains(t, answer, "the body: ", number)
		}
	}
}

// S47: an error repeats at most 200 bytes of what was sent.
func TestS47_errorsAreShort(t *testing.T) {
	h, b := server(t, serve.Options{})
	require.NoError(t, b.Warm(t.Context()))
	long := strings.Repeat("n", 100_000)
	for kind, text := range hostile(100_000) {
		_, answer, _ := call(h, "POST", "/v2/models/sums/infer", text)
		require.Less(t, len(answer), 700, kind)
	}
	for _, row := range [][2]string{{"GET", "/" + long}, {"GET", "/v2/models/" + long}, {"GET", "/v2/models/sums/versions/" + long}, {long, "/v2"}} {
		status, answer, _ := call(h, row[0], row[1], "")
		require.Contains(t, []int{404, 405}, status)
		require.Less(t, strings.Count(answer, "n"), 200)
	}
	for header, value := range map[string]string{"Content-Encoding": long, "Inference-Header-Content-Length": long} {
		r := httptest.NewRequest("POST", "/v2/models/sums/infer", strings.NewReader("{}"))
		r.Header.Set(header, value)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Contains(t, []int{400, 415}, w.Code)
		require.Less(t, strings.Count(w.Body.String(), "n"), 200)
	}
}

// A body may be compressed; its limit counts what comes out of it. S47: the reason of a refusal is the encoding.
func TestS47_compressedBodies(t *testing.T) {
	h, b := server(t, serve.Options{MaxBody: 2000})
	require.NoError(t, b.Warm(t.Context()))
	text := body(`{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[1,2,3,4]}`, flags)
	post := func(encoding, body string) (int, string) {
		r := httptest.NewRequest("POST", "/v2/models/sums/infer", strings.NewReader(body))
		r.Header.Set("Content-Encoding", encoding)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	compressed := func(encoding, text string) string {
		var b bytes.Buffer
		w := io.WriteCloser(gzip.NewWriter(&b))
		if encoding == "deflate" {
			w = zlib.NewWriter(&b)
		}
		_, err := io.WriteString(w, text)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return b.String()
	}
	for _, encoding := range []string{"gzip", "deflate"} {
		status, answer := post(encoding, compressed(encoding, text))
		require.Equal(t, 200, status, answer)
		status, answer = post(encoding, compressed(encoding, text+strings.Repeat(" ", 1<<20)))
		require.Equal(t, 413, status, answer)
		whole := compressed(encoding, text)
		for _, broken := range []string{"", text, whole[:len(whole)-3]} {
			status, answer = post(encoding, broken)
			require.Equal(t, 400, status)
			require.Regexp(t, `the body: (gzip|zlib|unexpected EOF|EOF)`, answer)
		}
		status, answer = post(encoding, whole+"more")
		require.Equal(t, 400, status)
		require.Regexp(t, `the body: (gzip|unexpected EOF|there is more after the end of the compressed data)`, answer)
	}
	status, answer := post("br", text)
	require.Equal(t, 415, status)
	require.Contains(t, answer, `Content-Encoding is \"br\", expected gzip, deflate or identity`)
}

// FuzzServe sends bodies to a model that returns its input: an answer means that the body was JSON, as encoding/json
// reads it, with these numbers. No body is an internal error.
func FuzzServe(f *testing.F) {
	echo := serve.Func(func(_ context.Context, batch data.Batch) (map[string]data.Array, error) {
		return map[string]data.Array{"y": batch.Fields[0].Array}, nil
	})
	b, err := serve.New(echo, data.Batch{Fields: []data.Field{data.X([]float64{1, 2}, 1, 2)}}, serve.Batching{MaxBatch: 64})
	require.NoError(f, err)
	f.Cleanup(func() { _ = b.Close() })
	require.NoError(f, b.Warm(f.Context()))
	h, err := serve.NewHandler(map[string]*serve.Batcher{"m": b}, serve.Options{})
	require.NoError(f, err)
	x := func(shape, data string) string {
		return `{"inputs":[{"name":"x","datatype":"FP64","shape":` + shape + `,"data":` + data + `}]}`
	}
	for _, text := range []string{x("[1,2]", "[1,2]"), x("[2,2]", " [[1,-2.5e-3] , [0,4]]"), x("[20,2]", "["+strings.Repeat("1,", 39)+"7]"),
		x("[20,2]", "["+strings.Repeat("[1,10.25],", 19)+"[0,7]]"), x("[1,2]", "[]") + "[" + strings.Repeat("1,", 39) + "7]",
		`{"a":[` + strings.Repeat("1,", 39) + `7],` + x("[1,2]", "[1,2]")[1:], `{"id":"[\"","outputs":[{"name":"y"}],` + x("[1,2]", "[01,2]")[1:]} {
		f.Add(text, 0, []byte(nil))
	}
	for _, text := range hostile(300) {
		f.Add(text, 0, []byte(nil))
	}
	f.Add(`{"inputs":[{"name":"x","datatype":"FP64","shape":[1,2],"parameters":{"binary_data_size":16}}]}`, 1, make([]byte, 16))
	f.Fuzz(func(t *testing.T, text string, header int, binary []byte) {
		r := httptest.NewRequest("POST", "/v2/models/m/infer", strings.NewReader(text+string(binary)))
		if header != 0 {
			r.Header.Set("Inference-Header-Content-Length", fmt.Sprint(len(text)))
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 {
			require.Contains(t, []int{400, 413}, w.Code, w.Body)
			return
		}
		if header == 0 {
			text += string(binary)
		}
		require.True(t, json.Valid([]byte(text)), "accepted: %q", text)
		if header != 0 || w.Header().Get("Inference-Header-Content-Length") != "" {
			return
		}
		require.Equal(t, dataOf(t, text, "inputs"), dataOf(t, w.Body.String(), "outputs"), "%q", text)
	})
}

// dataOf returns the numbers of the first tensor. A map has its members' exact names.
func dataOf(t *testing.T, text, member string) []any {
	var whole map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &whole))
	return flattened(whole[member].([]any)[0].(map[string]any)["data"])
}

func flattened(v any) (flat []any) {
	if list, ok := v.([]any); ok {
		for _, e := range list {
			flat = append(flat, flattened(e)...)
		}
		return flat
	}
	return []any{v}
}
