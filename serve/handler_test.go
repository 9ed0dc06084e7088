package serve_test

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/serve"
)

// sums adds the numbers of each example, and says whether a flag is set.
func sums(_ context.Context, batch data.Batch) (map[string]data.Array, error) {
	x, _ := batch.Field("x")
	flag, _ := batch.Field("flag")
	n := x.Len()
	out := map[string]data.Array{"sum": {Flat: make([]float32, n), Dims: []int{n}}, "flag": flag}
	for i, v := range x.Flat.([]float32) {
		switch v {
		case 99:
			return nil, errors.New("the device is gone")
		case 98:
			v = float32(math.NaN())
		}
		out["sum"].Flat.([]float32)[i/4] += v
	}
	return out, nil
}

// server is a handler of the model "sums", which takes x, FP32 [-1, 2, 2], and flag, BOOL [-1].
func server(t *testing.T, limits serve.Options) (*serve.Handler, *serve.Batcher) {
	t.Helper()
	example := data.Batch{Fields: []data.Field{data.X(make([]float32, 4), 1, 2, 2), data.Named("flag", []bool{true}, 1)}}
	b, err := serve.New(serve.Func(sums), example, serve.Batching{MaxBatch: 4})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	h, err := serve.NewHandler(map[string]*serve.Batcher{"sums": b}, limits)
	require.NoError(t, err)
	return h, b
}

// call returns a request's status and answer.
func call(h http.Handler, method, path, body string) (status int, answer string, header http.Header) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w.Code, w.Body.String(), w.Header()
}

const flags = `{"name":"flag","shape":[1],"datatype":"BOOL","data":[true]}`

func body(x, flag string) string { return `{"inputs":[` + x + `,` + flag + `]}` }

func TestHandler(t *testing.T) {
	h, b := server(t, serve.Options{MaxBody: 2000})
	status, answer, _ := call(h, "GET", "/v2/health/ready", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.JSONEq(t, `{"error":"model \"sums\" is not ready: Batcher.Warm was not called or has not ended, or the batcher is closed"}`, answer)
	require.NoError(t, b.Warm(t.Context()))

	infer := "/v2/models/sums/infer"
	x := func(datatype, shape, data string) string {
		return fmt.Sprintf(`{"name":"x","shape":%s,"datatype":%q,"data":%s}`, shape, datatype, data)
	}
	good := x("FP32", "[1,2,2]", "[1,2,3,4.5]")
	tooMany := `{"inputs":[` + x("FP32", "[5,2,2]", "["+strings.Repeat("0,", 19)+"0]") + `,{"name":"flag","shape":[5],"datatype":"BOOL","data":[true,true,true,true,true]}]}`
	for _, row := range []struct {
		method, path, body string
		status             int
		want               string // the answer; after "…" a part of the error
	}{
		{"GET", "/v2", "", 200, `{"name":"lazo","version":"2","extensions":["binary_tensor_data","model_configuration"]}`},
		{"GET", "/v2/health/live", "", 200, `{"live":true}`},
		{"GET", "/v2/health/ready", "", 200, `{"ready":true}`},
		{"GET", "/v2/models/sums/ready", "", 200, `{"name":"sums","ready":true}`},
		{"GET", "/v2/models/sums/versions/1/ready", "", 200, `{"name":"sums","ready":true}`},
		{"GET", "/v2/models/sums", "", 200, `{"name":"sums","versions":["1"],"platform":"lazo",
			"inputs":[{"name":"x","datatype":"FP32","shape":[-1,2,2]},{"name":"flag","datatype":"BOOL","shape":[-1]}],
			"outputs":[{"name":"flag","datatype":"BOOL","shape":[-1]},{"name":"sum","datatype":"FP32","shape":[-1]}]}`},
		{"POST", infer, body(good, flags), 200, `{"model_name":"sums","model_version":"1",
			"outputs":[{"name":"flag","datatype":"BOOL","shape":[1],"data":[true]},{"name":"sum","datatype":"FP32","shape":[1],"data":[10.5]}]}`},
		{"POST", "/v2/models/sums/versions/1/infer", `{"id":"a","parameters":{"p":1},"outputs":[{"name":"sum","parameters":{"binary_data":false}}],"inputs":[
			` + x("FP32", "[2, 2, 2]", "[ [[1,2],[3,4]],\n[[-1e2,0],[0,0]] ]") + `,{"name":"flag","shape":[2],"datatype":"BOOL","data":[true,false]}]}`, 200,
			`{"model_name":"sums","model_version":"1","id":"a","outputs":[{"name":"sum","datatype":"FP32","shape":[2],"data":[10,-100]}]}`},

		{"GET", "/v2/models/other", "", 404, `…there is no model "other"; there are ["sums"]`},
		{"POST", "/v2/models/other/infer", body(good, flags), 404, `…there is no model "other"`},
		{"GET", "/v2/models/sums/versions/2", "", 404, `…model "sums" has no version "2"`},
		{"GET", "/v3", "", 404, `…there is no "/v3"`},
		{"GET", infer, "", 405, `…the method is "GET", expected POST`},
		{"POST", "/v2", "", 405, `…the method is "POST", expected GET`},
		{"POST", infer, body(good, flags) + strings.Repeat(" ", 2000), 413, `…the body has more than 2000 bytes`},
		{"POST", infer, tooMany, 413, `…too many examples: "x" has 5, expected 1 to 4`},
		{"POST", infer, "", 400, `…the body: unexpected end`},
		{"POST", infer, body(good, flags) + "{}", 400, `…the body: there is text after the JSON object`},
		{"POST", infer, `{}`, 400, `…the body: it has no inputs`},
		{"POST", infer, `{"inputs":[` + good + `]}`, 400, `…there is no "flag": expected "x", float32 [batch, 2, 2], "flag", bool [batch]`},
		{"POST", infer, `{"inputs":[` + good + `,` + flags + `,{"name":"z","shape":[1],"datatype":"BOOL","data":[true]}]}`, 400, `…there is no input "z": expected "x", float32 [batch, 2, 2], "flag", bool [batch]`},
		{"POST", infer, body(good, good), 400, `…input "x" appears twice`},
		{"POST", infer, `{"outputs":[{"name":"mean"}],` + body(good, flags)[1:], 400, `…there is no output "mean"; there are ["flag" "sum"]`},
		{"POST", infer, body(x("FP64", "[1,2,2]", "[1,2,3,4]"), flags), 400, `…"x" is float64 [1 2 2]: expected float32 [batch, 2, 2]`},
		{"POST", infer, body(x("FP16", "[1,2,2]", "[1,2,3,4]"), flags), 400, `…datatype "FP16", expected one of BOOL, BYTES, FP32`},
		{"POST", infer, body(x("FP32", "[1,4]", "[1,2,3,4]"), flags), 400, `…"x" is float32 [1 4]: expected float32 [batch, 2, 2]`},
		{"POST", infer, body(x("FP32", "[]", "[1]"), flags), 400, `…"x" is float32 []: expected float32 [batch, 2, 2]`},
		{"POST", infer, body(x("FP32", "[1,-2,2]", "[1]"), flags), 400, `…"x" is float32 [1 -2 2]: expected`},
		{"POST", infer, body(x("FP32", "[4000000000,4000000000,2]", "[1]"), flags), 400, `…"x" is float32 [4000000000 4000000000 2]: expected float32 [batch, 2, 2]`},
		{"POST", infer, `{"id":7,` + body(good, flags)[1:], 400, `…the body: id is "7", expected a string`},
		{"POST", infer, `[]`, 400, `…the body: it is a list, expected an object`},
		{"POST", infer, body(x("FP32", `"1,2,2"`, "[1,2,3,4]"), flags), 400, `…the body: shape is "\"1,2,2\"", expected a list of whole numbers`},
		{"POST", infer, body(x("FP32", `[1.5]`, "[1,2,3,4]"), flags), 400, `…the body: shape is "[1.5]", expected a list of whole numbers`},
		{"POST", infer, body(x("FP32", "[1,2,2]", "[1,2,3]"), flags), 400, `…its data has 3 elements, and its shape [1 2 2] means 4`},
		{"POST", infer, body(x("FP32", "[1,2,2]", "[[[1,2,3],[4]]]"), flags), 400, `…its data has a list of 3 at axis 2`},
		{"POST", infer, body(x("FP32", "[1,2,2]", "[[[[1,2,3,4]]]]"), flags), 400, `…nested deeper than its shape`},
		{"POST", infer, body(x("FP32", "[1,2,2]", "[[1,2],[3,4]]"), flags), 400, `…its data is neither a flat list nor nested as its shape`},
		{"POST", infer, body(x("FP32", "[1,2,2]", "[1,2,,3,4]"), flags), 400, `…the body: invalid character ','`},
		{"POST", infer, body(x("FP32", "[1,2,2]", "[1,2 3,4]"), flags), 400, `…the body: invalid character '3' after array element`},
		{"POST", infer, body(x("FP32", "[1,2,2]", "[1,2,3,4,]"), flags), 400, `…the body: invalid character ']'`},
		{"POST", infer, body(x("FP32", "[1,2,2]", "[,1,2,3,4]"), flags), 400, `…the body: invalid character ','`},
		{"POST", infer, body(x("FP32", "[1,2,2]", "[1,2,3,4"), flags), 400, `…the body: `},
		{"POST", infer, body(x("FP32", "[1,2,2]", "[1,2,3,-]"), flags), 400, `…the body: invalid character ']' in numeric literal`},
		{"POST", infer, body(x("FP32", "[1,2,2]", "[1,2,3,NaN]"), flags), 400, `…the body: invalid character 'N'`},
		{"POST", infer, body(x("FP32", "[1,2,2]", "[]"), flags), 400, `…its data has 0 elements, and its shape [1 2 2] means 4`},
		{"POST", infer, body(x("FP32", "[1,2,2]", "7"), flags), 400, `…data is "7", expected a list of numbers`},
		{"POST", infer, body(x("FP32", "[1,2,2]", "null"), flags), 400, `…data is "null", expected a list of numbers`},
		{"POST", infer, body(x("FP32", "[1,2,2]", `[1,"2",3,4]`), flags), 400, `…data is "[1,\"2\",3,4]", expected a list of numbers, or of true and false`},
		{"POST", infer, body(x("FP32", "[1,2,2]", `[1,null,3,4]`), flags), 400, `…data is "[1,null,3,4]", expected a list`},
		{"POST", infer, body(x("FP32", "[1,2,2]", `[1,{"a":1},3,4]`), flags), 400, `…data is "[1,{\"a\":1},3,4]", expected a list`},
		{"POST", infer, body(x("FP32", "[1,2,2]", `[1,1e99,3,4]`), flags), 400, `…element 1 is "1e99": value out of range`},
		{"POST", infer, body(x("INT8", "[1,2,2]", `[1,128,3,4]`), flags), 400, `…"x" is int8 [1 2 2]: expected float32`},
		{"POST", infer, body(good, strings.Replace(flags, "[true]", "[1]", 1)), 400, `…element 0 is "1": neither true nor false`},
		{"POST", infer, body(x("FP32", "[1,2,2]", "[99,0,0,0]"), flags), 500, `…an internal error, and the server has no log`},
		{"POST", infer, body(x("FP32", "[1,2,2]", "[98,0,0,0]"), flags), 500, `…output "sum": element 0 is NaN, which JSON cannot represent`},
	} {
		status, answer, header := call(h, row.method, row.path, row.body)
		require.Equal(t, row.status, status, "%s %s %s: %s", row.method, row.path, row.body, answer)
		require.Equal(t, "application/json", header.Get("Content-Type"))
		part, fails := strings.CutPrefix(row.want, "…")
		if !fails {
			require.JSONEq(t, row.want, answer)
			continue
		}
		var said map[string]string
		require.NoError(t, json.Unmarshal([]byte(answer), &said))
		require.Len(t, said, 1)
		require.Contains(t, said["error"], part)
	}

	h.Drain()
	status, answer, _ = call(h, "GET", "/v2/health/ready", "")
	require.Equal(t, 503, status)
	require.JSONEq(t, `{"error":"the server is shutting down"}`, answer)
	status, _, _ = call(h, "POST", infer, body(good, flags))
	require.Equal(t, 200, status, "what comes while it drains is answered")
	_, _, header := call(h, "GET", "/v2/health/live", "")
	require.Equal(t, "close", header.Get("Connection"))
	require.NoError(t, b.Close())
	status, _, header = call(h, "POST", infer, body(good, flags))
	require.Equal(t, 503, status)
	require.Equal(t, "1", header.Get("Retry-After"))
}

// Clients that leave or wait too long do not affect others; requests that find the queue full are asked to come later.
func TestHandler_endsOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &double{hold: make(chan struct{}), begun: make(chan struct{}, 9)}
		b := batcher(t, d, serve.Batching{MaxBatch: 2, Queue: 2})
		h, err := serve.NewHandler(map[string]*serve.Batcher{"double": b}, serve.Options{Timeout: time.Second})
		require.NoError(t, err)
		type said struct {
			status int
			text   string
		}
		post := func(ctx context.Context) <-chan said {
			came := make(chan said, 1)
			go func() {
				w := httptest.NewRecorder()
				r := httptest.NewRequest("POST", "/v2/models/double/infer", strings.NewReader(`{"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[4]}]}`))
				h.ServeHTTP(w, r.WithContext(ctx))
				came <- said{w.Code, w.Body.String()}
			}()
			synctest.Wait()
			return came
		}
		running := post(context.WithoutCancel(t.Context()))
		<-d.begun
		ctx, leave := context.WithCancel(t.Context())
		gone, slow := post(ctx), post(t.Context())
		full := <-post(t.Context())
		require.Equal(t, 503, full.status)
		require.Contains(t, full.text, "the queue is full: 2 of at most 2 examples wait")
		leave()
		require.Equal(t, 499, (<-gone).status)
		next := post(t.Context())
		time.Sleep(time.Second)
		late := <-slow
		require.Equal(t, 504, late.status)
		require.Contains(t, late.text, "the request took too long: the limit is 1s")
		require.Equal(t, 504, (<-running).status)
		require.Equal(t, 504, (<-next).status)
		close(d.hold)
		again := <-post(t.Context())
		require.Equal(t, 200, again.status)
		require.Contains(t, again.text, `"data":[8]`)
		require.Equal(t, []int{1, 1}, d.calls)
	})
}

func TestNewHandler_refuses(t *testing.T) {
	_, b := server(t, serve.Options{})
	for want, row := range map[string]struct {
		models map[string]*serve.Batcher
		limits serve.Options
	}{
		`model "digits" is nil: expected a batcher`: {models: map[string]*serve.Batcher{"digits": nil}},
		`the name of a model is "a/b"`:              {models: map[string]*serve.Batcher{"a/b": b}},
		`the name of a model is ""`:                 {models: map[string]*serve.Batcher{"": b}},
		`MaxBody is -1 and Timeout is 0s, expected`: {limits: serve.Options{MaxBody: -1}},
		`MaxBody is 0 and Timeout is -1s, expected`: {limits: serve.Options{Timeout: -time.Second}},
	} {
		_, err := serve.NewHandler(row.models, row.limits)
		require.ErrorContains(t, err, want)
	}
}

// A predictor that is closed is not ready, from the first request on that it says so to, and a Warm mends it.
func TestHandler_ofAPredictorThatIsClosed(t *testing.T) {
	closed := false
	of := serve.Func(func(_ context.Context, batch data.Batch) (map[string]data.Array, error) {
		if closed {
			return nil, fmt.Errorf("the model: %w", serve.ErrClosed)
		}
		return map[string]data.Array{"x": batch.Fields[0].Array}, nil
	})
	b, err := serve.New(of, data.Batch{Fields: []data.Field{data.X([]float32{0}, 1)}}, serve.Batching{MaxBatch: 2})
	require.NoError(t, err)
	defer b.Close()
	h, err := serve.NewHandler(map[string]*serve.Batcher{"m": b}, serve.Options{})
	require.NoError(t, err)
	require.NoError(t, b.Warm(t.Context()))
	all := func() (infer, ready int) {
		infer, _, _ = call(h, "POST", "/v2/models/m/infer", `{"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[4]}]}`)
		ready, _, _ = call(h, "GET", "/v2/health/ready", "")
		return infer, ready
	}
	infer, ready := all()
	require.Equal(t, []int{200, 200}, []int{infer, ready})
	closed = true
	infer, ready = all()
	require.Equal(t, []int{503, 503}, []int{infer, ready})
	closed = false
	require.NoError(t, b.Warm(t.Context()))
	infer, ready = all()
	require.Equal(t, []int{200, 200}, []int{infer, ready})
}

// Clients with keep-alive connections lose no request: each is asked to close, and afterwards no open connection is
// left.
func TestHandler_drainsClientsThatKeepTheirConnections(t *testing.T) {
	const clients = 50
	h, b := server(t, serve.Options{})
	require.NoError(t, b.Warm(t.Context()))
	s := httptest.NewServer(h)
	defer s.Close()
	var begun, done sync.WaitGroup
	var answered atomic.Int64
	begun.Add(clients)
	for range clients {
		done.Go(func() {
			client := &http.Client{Transport: new(http.Transport)}
			for n := 0; ; n++ {
				answer, err := client.Post(s.URL+"/v2/models/sums/infer", "application/json",
					strings.NewReader(body(`{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[1,2,3,4]}`, flags)))
				if err == nil {
					_, err = io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
				}
				if n == 0 {
					begun.Done()
				}
				if err != nil || answer.StatusCode != 200 {
					t.Errorf("request %d is lost: %v", n, err)
					return
				}
				if answered.Add(1); answer.Close {
					return
				}
			}
		})
	}
	begun.Wait()
	h.Drain()
	done.Wait() // each was told
	require.NoError(t, s.Config.Shutdown(t.Context()))
	t.Logf("%d requests of %d clients, 0 lost", answered.Load(), clients)
}

// piped is a listener of connections within the process.
type piped chan net.Conn

func (p piped) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p piped) Close() error   { close(p); return nil }
func (p piped) Addr() net.Addr { return &net.TCPAddr{} }

// S43, S47: the time limit counts the reading of the body and the sending of the answer, with their own reason; a
// client that leaves ends its request.
func TestS43_limitOfTheWholeRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &double{hold: make(chan struct{}), begun: make(chan struct{}, 9)}
		b := batcher(t, d, serve.Batching{MaxBatch: 1})
		told := make(chan serve.Served, 9)
		h, err := serve.NewHandler(map[string]*serve.Batcher{"m": b}, serve.Options{Timeout: time.Second, Observe: func(s serve.Served) { told <- s }})
		require.NoError(t, err)
		listener := make(piped)
		server := &http.Server{Handler: h}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(listener) }()
		connect := func() net.Conn {
			c, of := net.Pipe()
			listener <- of
			return c
		}
		head := "POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\nContent-Length: "

		slow := connect()
		begin := time.Now()
		_, err = io.WriteString(slow, head+"9999\r\n\r\n{")
		require.NoError(t, err)
		answer, err := http.ReadResponse(bufio.NewReader(slow), nil)
		require.NoError(t, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, 408, answer.StatusCode)
		require.JSONEq(t, `{"error":"the body was not sent within 1s"}`, string(text))
		require.Equal(t, time.Second, time.Since(begin))
		require.NoError(t, slow.Close())

		slow = connect() // the compressed data ends, and the body does not
		begin = time.Now()
		var whole bytes.Buffer
		compress := zlib.NewWriter(&whole)
		_, err = io.WriteString(compress, one)
		require.NoError(t, err)
		require.NoError(t, compress.Close())
		_, err = fmt.Fprintf(slow, "%s%d\r\nContent-Encoding: deflate\r\n\r\n%s", head, whole.Len()+100, whole.Bytes())
		require.NoError(t, err)
		answer, err = http.ReadResponse(bufio.NewReader(slow), nil)
		require.NoError(t, err)
		require.Equal(t, 408, answer.StatusCode)
		require.Equal(t, time.Second, time.Since(begin))
		require.NoError(t, slow.Close())

		text = []byte(one)
		running, gone := connect(), connect()
		_, err = fmt.Fprintf(running, "%s%d\r\n\r\n%s", head, len(text), text)
		require.NoError(t, err)
		<-d.begun
		_, err = fmt.Fprintf(gone, "%s%d\r\n\r\n%s", head, len(text), text)
		require.NoError(t, err)
		synctest.Wait()
		for len(told) > 0 {
			<-told
		}
		require.NoError(t, gone.Close())
		synctest.Wait()
		require.Len(t, told, 1, "long before the limit")
		require.Equal(t, 499, (<-told).Status)
		close(d.hold)

		// running reads no answer.
		synctest.Wait()
		require.Empty(t, told)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, told, 1)
		require.Equal(t, time.Second, (<-told).Duration)

		// The limits are of one request each, and not of its connection.
		again := connect()
		for range 2 {
			answers := bufio.NewReader(again)
			_, err = fmt.Fprintf(again, "%s%d\r\n\r\n%s", head, len(text), text)
			require.NoError(t, err)
			answer, err = http.ReadResponse(answers, nil)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, answer.Body)
			require.NoError(t, err)
			require.Equal(t, 200, answer.StatusCode)
			time.Sleep(time.Hour)
		}
		require.NoError(t, again.Close())
		require.NoError(t, running.Close())
		require.NoError(t, server.Close())
		<-ended
	})
}

// A body that its request's handler does not read, of a GET and of a request that is refused, delays the answer by a
// second at most, however slowly it comes. One that has come keeps the connection.
func TestHandler_aBodyThatIsNotWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := serve.NewHandler(nil, serve.Options{Timeout: time.Hour})
		require.NoError(t, err)
		listener := make(piped)
		server := &http.Server{Handler: h}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(listener) }()
		for _, head := range []string{"GET /v2", "POST /v2/models/m/infer", "POST /v2", "GET /other"} {
			c, of := net.Pipe()
			listener <- of
			answers := bufio.NewReader(c)
			for _, sent := range []int{9, 9, 3} {
				begin := time.Now()
				_, err = fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n%s", head, "123456789"[:sent])
				require.NoError(t, err)
				answer, err := http.ReadResponse(answers, nil)
				require.NoError(t, err)
				_, err = io.Copy(io.Discard, answer.Body)
				require.NoError(t, err)
				require.Equal(t, sent < 9, answer.Close)
				if sent == 9 {
					require.Zero(t, time.Since(begin))
				} else {
					require.Equal(t, time.Second, time.Since(begin)) // of the bubble's clock
				}
			}
			_, err = c.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
		}
		require.NoError(t, server.Close())
		<-ended
	})
}

// Each request is counted and has a line in the log, also one that http.ServeMux would answer itself.
func TestHandler_countsEachRequest(t *testing.T) {
	var lines bytes.Buffer
	var told []serve.Served
	h, err := serve.NewHandler(nil, serve.Options{Log: slog.New(slog.NewTextHandler(&lines, nil)), Observe: func(s serve.Served) { told = append(told, s) }})
	require.NoError(t, err)
	for n, row := range []struct {
		method, path string
		status       int
	}{{"GET", "/v3", 404}, {"POST", "/v2", 405}, {"GET", "//v2", 404}, {"GET", "/v2/../v2", 404}, {"GET", "/v2/", 404}, {"OPTIONS", "*", 404}, {"CONNECT", "host:80", 404}} {
		status, answer, _ := call(h, row.method, row.path, "")
		require.Equal(t, row.status, status, row.path)
		require.Contains(t, answer, `{"error":`, row.path)
		require.Len(t, told, n+1, row.path)
		require.Equal(t, []any{row.method, row.status}, []any{told[n].Method, told[n].Status}, row.path)
		require.Equal(t, n+1, strings.Count(lines.String(), "msg=request"), row.path)
	}
}

// S43: a request ends with the server's own context. That is no internal error.
func TestS43_endOfTheServersContext(t *testing.T) {
	for status, of := range map[int]func(ctx context.Context) (context.Context, context.CancelFunc){
		499: context.WithCancel,
		503: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(errors.New("a signal")) }
		},
		504: func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, 0) },
	} {
		d := &double{hold: make(chan struct{}), begun: make(chan struct{}, 9)}
		b := batcher(t, d, serve.Batching{MaxBatch: 1})
		h, err := serve.NewHandler(map[string]*serve.Batcher{"m": b}, serve.Options{})
		require.NoError(t, err)
		ctx, cancel := of(t.Context())
		cancel()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "/v2/models/m/infer", strings.NewReader(one)))
		require.Equal(t, status, w.Code, w.Body)
		close(d.hold)
	}
}

// S47: what a panic or a device says is in the log, under the id that the client gets; each request has a line.
func TestS47_internalErrorsAreInTheLog(t *testing.T) {
	var lines bytes.Buffer
	var told []serve.Served
	b := batcher(t, &double{}, serve.Batching{})
	h, err := serve.NewHandler(map[string]*serve.Batcher{"m": b}, serve.Options{Log: slog.New(slog.NewJSONHandler(&lines, nil)), Observe: func(s serve.Served) { told = append(told, s) }})
	require.NoError(t, err)
	status, answer, _ := call(h, "POST", "/v2/models/m/infer", strings.Replace(one, "[1]}", "[-13]}", 1))
	require.Equal(t, 500, status)
	id := regexp.MustCompile(`^{"error":"an internal error, in the server's log under the id ([A-Z2-7]{12})"}$`).FindStringSubmatch(answer)
	require.NotNil(t, id, answer)
	text := strings.Split(strings.TrimSpace(lines.String()), "\n")
	require.Len(t, text, 2)
	var failure, request map[string]any
	require.NoError(t, json.Unmarshal([]byte(text[0]), &failure))
	require.NoError(t, json.Unmarshal([]byte(text[1]), &request))
	require.Equal(t, id[1], failure["id"])
	require.Equal(t, "m", failure["model"])
	require.Contains(t, failure["error"], "thirteen")
	require.Contains(t, failure["stack"], "double")
	require.Equal(t, "request", request["msg"])
	require.Equal(t, []any{"/v2/models/m/infer", 500.0, 1.0}, []any{request["path"], request["status"], request["rows"]})
	require.Len(t, told, 1)
	require.Positive(t, told[0].Duration)
	told[0].Duration, told[0].Queued = 0, 0
	require.Equal(t, serve.Served{Method: "POST", Path: "/v2/models/m/infer", Model: "m", Version: 1, Status: 500, Rows: 1,
		Received: len(one) + 2, Sent: len(answer)}, told[0])

	_, _, _ = call(h, "GET", "/v2/models/a%0Ab", "")
	require.Len(t, strings.Split(strings.TrimSpace(lines.String()), "\n"), 3)
	require.Equal(t, []any{"", 404}, []any{told[1].Model, told[1].Status}, "no name that a client invented")
}
