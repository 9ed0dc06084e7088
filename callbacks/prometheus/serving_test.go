package prometheus

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/serve"
)

type doubling struct{}

func (doubling) Answer(_ context.Context, batch data.Batch) (map[string]data.Array, error) {
	x, err := batch.Field("x")
	return map[string]data.Array{"y": x}, err
}

func (doubling) InputNames() []string { return []string{"x"} }

func served(t *testing.T, m *Metrics) http.Handler {
	batcher, err := serve.New(m.Predictor("digits", doubling{}), dataOf(1), serve.Batching{MaxBatch: 4})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, batcher.Close()) })
	require.NoError(t, batcher.Warm(t.Context()))
	handler, err := serve.NewHandler(map[string]*serve.Batcher{"digits": batcher}, serve.Options{})
	require.NoError(t, err)
	return m.Serving(handler)
}

func dataOf(rows int) data.Batch {
	return data.Batch{Fields: []data.Field{data.X(make([]float32, rows), rows)}}
}

// S52: a server's requests by code, latencies, batch sizes, and no series for names that clients invent.
func TestServing(t *testing.T) {
	m := New()
	m.Queue("digits", func() int { return 3 })
	server := httptest.NewServer(served(t, m))
	defer server.Close()
	for _, path := range []string{"digits", "digits", "invented", "other"} {
		answer, err := http.Post(server.URL+"/v2/models/"+path+"/infer", "application/json",
			strings.NewReader(`{"inputs": [{"name": "x", "datatype": "FP32", "shape": [3], "data": [3, 5, 7]}]}`))
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
	}
	answer, err := http.Get(server.URL + "/v2/models/digits/infer")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	server.Close() // waits for the handlers
	require.Equal(t, `lazo_serving_requests_in_flight 0
lazo_serving_requests_total{code="200",model="digits",route="/v2/models/{name}/infer"} 2
lazo_serving_requests_total{code="404",model="",route="/v2/models/{name}/infer"} 2
lazo_serving_requests_total{code="405",model="digits",route="/v2/models/{name}/infer"} 1
`, values(t, m, "lazo_serving_requests_"))
	got := values(t, m, "lazo_serving")
	require.Contains(t, got, `lazo_serving_request_seconds_count{model="digits",route="/v2/models/{name}/infer"} 3`)
	require.Contains(t, got, `lazo_serving_queue_examples{model="digits"} 3`)
	require.Contains(t, got, "lazo_serving_batch_examples_sum{model=\"digits\"} 15\n", "1, 2 and 4 of Warm, and two requests of 3 with padding")
	require.Contains(t, got, `lazo_serving_batch_seconds_count{model="digits"} 5`)
}

// The optional methods of a predictor stay.
func TestPredictor_inputNames(t *testing.T) {
	batch := data.Batch{Fields: []data.Field{data.X([]float32{1}, 1), data.Named("label", []int32{1}, 1)}}
	_, err := serve.New(New().Predictor("digits", doubling{}), batch, serve.Batching{})
	require.ErrorContains(t, err, `the example has "label", which the predictor does not take`)
}

// A handler without a code has 200, one that panics 500.
func TestServing_codes(t *testing.T) {
	m := New()
	for _, h := range []http.HandlerFunc{
		func(http.ResponseWriter, *http.Request) {},
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusEarlyHints); w.WriteHeader(418) },
		func(http.ResponseWriter, *http.Request) { panic(errors.New("bad")) },
	} {
		func() {
			defer func() { _ = recover() }()
			m.Serving(h).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		}()
	}
	require.Equal(t, `lazo_serving_requests_in_flight 0
lazo_serving_requests_total{code="200",model="",route="other"} 1
lazo_serving_requests_total{code="418",model="",route="other"} 1
lazo_serving_requests_total{code="500",model="",route="other"} 1
`, values(t, m, "lazo_serving_requests_"))
}
