package prometheus

import (
	"context"
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
	batcher, err := serve.New(doubling{}, dataOf(1), serve.Batching{MaxBatch: 4})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, batcher.Close()) })
	handler, err := serve.NewHandler(map[string]*serve.Batcher{"digits": batcher}, serve.Options{Observe: m.Served})
	require.NoError(t, err)
	return handler
}

func dataOf(rows int) data.Batch {
	return data.Batch{Fields: []data.Field{data.X(make([]float32, rows), rows)}}
}

const inference = `{"inputs": [{"name": "x", "datatype": "FP32", "shape": [3], "data": [3, 5, 7]}]}`

// S52: a server's requests by code, latencies, waits and examples, and no series for names that clients invent.
func TestServed(t *testing.T) {
	m := New()
	server := httptest.NewServer(served(t, m))
	defer server.Close()
	for _, path := range []string{"digits", "digits", "invented", "other"} {
		answer, err := http.Post(server.URL+"/v2/models/"+path+"/infer", "application/json", strings.NewReader(inference))
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
	}
	server.Close() // waits for the handlers
	require.Equal(t, `lazo_serving_requests_total{code="200",model="digits"} 2
lazo_serving_requests_total{code="404",model=""} 2
`, values(t, m, "lazo_serving_requests_"))
	got := values(t, m, "lazo_serving")
	require.Contains(t, got, `lazo_serving_request_seconds_count{model="digits"} 2`)
	require.Contains(t, got, `lazo_serving_queue_seconds_count{model="digits"} 2`)
	require.NotContains(t, got, `lazo_serving_queue_seconds_count{model=""}`)
	require.Contains(t, got, "lazo_serving_examples_total{model=\"digits\"} 6\n")
}
