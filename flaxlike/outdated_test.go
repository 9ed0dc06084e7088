package flaxlike_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/decision"
	"github.com/lazo-ml/lazo/flaxlike/selection"
	"github.com/lazo-ml/lazo/serve"
)

// An outdated calibration fails the answers that are made by it, and a request for others is answered: by the model, by
// an ensemble, together with other requests, and over HTTP.
func TestServe_outdatedOutput(t *testing.T) {
	of := func() *flaxlike.Model {
		return newModel(t, asIs(nil, "a", "b"), flaxlike.WithLoss(flaxlike.Loss{Name: "binary_crossentropy", Output: "a"}, flaxlike.Loss{Name: "mse", Output: "b"}))
	}
	m := of()
	batch := data.Batch{Fields: []data.Field{data.Named("a", []float32{0, 1}, 2, 1), data.Named("b", []float32{3, 4}, 2, 1)}}
	require.NoError(t, m.Init(t.Context(), batch))
	require.NoError(t, m.SetCalibration("a", decision.Calibration{Scale: 2}))
	content := must.M1(snapshotOf(m)(t.Context()))

	var mu sync.Mutex
	var calls []int
	b := must.M1(serve.New(serve.Func(func(ctx context.Context, batch data.Batch) (map[string]data.Array, error) {
		mu.Lock()
		calls = append(calls, batch.Fields[0].Array.Len())
		mu.Unlock()
		return m.Answer(ctx, batch)
	}), batch, serve.Batching{MaxBatch: 2, Delay: time.Hour}))
	require.NoError(t, b.Warm(t.Context()))
	log := new(strings.Builder) // whose lines are of one request at a time
	server := httptest.NewServer(must.M1(serve.NewHandler(map[string]*serve.Batcher{"m": b}, serve.Options{Log: slog.New(slog.NewTextHandler(log, nil))})))
	t.Cleanup(func() { server.Close(); require.NoError(t, b.Close()) })
	require.NoError(t, content.Restore(t.Context())) // a change of the weights
	calls = nil

	var group sync.WaitGroup
	for i := range 2 { // which run together
		group.Go(func() {
			one, err := b.Answer(t.Context(), must.M1(batch.Slice(i, i+1)))
			if !errors.Is(err, flaxlike.ErrOutdated) || !strings.Contains(err.Error(), `output "a": its calibration is outdated`) ||
				len(one) != 1 || !slices.Equal([]float32{3 + float32(i)}, one["b"].Flat.([]float32)) {
				t.Errorf("%v, %v", one, err)
			}
		})
	}
	group.Wait()
	require.Equal(t, []int{2}, calls, "no request of a batch is tried alone for what no input changes")

	ask := func(outputs string) (int, string) {
		r := must.M1(http.Post(server.URL+"/v2/models/m/infer", "application/json", strings.NewReader(
			`{"inputs": [{"name": "a", "datatype": "FP32", "shape": [2, 1], "data": [0, 1]}, {"name": "b", "datatype": "FP32", "shape": [2, 1], "data": [3, 4]}]`+outputs+`}`)))
		defer r.Body.Close()
		text := new(strings.Builder)
		must.M1(io.Copy(text, r.Body))
		return r.StatusCode, text.String()
	}
	for outputs, want := range map[string]int{``: 500, `, "outputs": [{"name": "b"}]`: 200, `, "outputs": [{"name": "b"}, {"name": "a_class"}]`: 500, `, "outputs": [{"name": "c"}]`: 400} {
		status, text := ask(outputs)
		require.Equal(t, want, status, text)
		if want == 500 {
			require.Contains(t, text, "an internal error, in the server's log under the id ")
			require.Contains(t, log.String(), `output \"a\": its calibration is outdated`)
		}
	}

	other := of()
	require.NoError(t, other.Init(t.Context(), batch))
	ensemble := must.M1(selection.NewEnsemble(other, m))
	means, err := ensemble.Answer(t.Context(), batch)
	require.ErrorIs(t, err, flaxlike.ErrOutdated)
	require.ErrorContains(t, err, "model 2 of the ensemble")
	require.Equal(t, []float32{3, 4}, means["b"].Flat)
	_, err = ensemble.Predict(t.Context(), must.M1(data.New(batch.Fields...)))
	require.ErrorContains(t, err, "selection: predict: model 2 of the ensemble")
	require.NoError(t, m.SetCalibration("a"))
	require.Len(t, must.M1(ensemble.Answer(t.Context(), batch)), 3)
	require.Len(t, must.M1(b.Answer(t.Context(), batch)), 3)
}
