package serve_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/serve"
)

// times is a model that multiplies by n, and says when it is entered if begun is not nil.
func times(t *testing.T, n float32, begun, hold chan struct{}) *serve.Batcher {
	t.Helper()
	return batcher(t, serve.Func(func(_ context.Context, batch data.Batch) (map[string]data.Array, error) {
		if begun != nil {
			begun <- struct{}{}
			<-hold
		}
		x := batch.Fields[0].Array
		out := make([]float32, x.Len())
		for i, v := range x.Flat.([]float32) {
			out[i] = n * v
		}
		return map[string]data.Array{"y": {Flat: out, Dims: x.Dims}}, nil
	}), serve.Batching{MaxBatch: 4})
}

const one = `{"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1]}]}`

// A model has versions, of which a request without one uses the highest. The index and the configuration are Triton's.
func TestHandler_versions(t *testing.T) {
	first, second := times(t, 1, nil, nil), times(t, 2, nil, nil)
	h, err := serve.NewHandler(map[string]*serve.Batcher{"m": first}, serve.Options{})
	require.NoError(t, err)
	old, err := h.Load("m", 2, second)
	require.NoError(t, err)
	require.Nil(t, old)
	require.NoError(t, first.Warm(t.Context()))
	_, answer, _ := call(h, "POST", "/v2/repository/index", "")
	require.JSONEq(t, `[{"name":"m","version":"1","state":"READY","reason":""},{"name":"m","version":"2","state":"UNAVAILABLE",
		"reason":"model \"m\" is not ready: Batcher.Warm was not called or has not ended, or the batcher is closed"}]`, answer)
	require.NoError(t, second.Warm(t.Context()))
	for path, want := range map[string]string{"/v2/models/m/infer": "2", "/v2/models/m/versions/1/infer": "1", "/v2/models/m/versions/2/infer": "2"} {
		_, answer, _ := call(h, "POST", path, one)
		require.Contains(t, answer, `"data":[`+want+`]`)
		require.Contains(t, answer, `"model_version":"`+want+`"`)
	}
	_, answer, _ = call(h, "GET", "/v2/models/m/versions/1", "")
	require.Contains(t, answer, `"versions":["1","2"]`)
	_, answer, _ = call(h, "GET", "/v2/models/m/config", "")
	require.JSONEq(t, `{"name":"m","platform":"lazo","backend":"lazo","max_batch_size":4,"input":[{"name":"x","data_type":"TYPE_FP32","dims":[]}],
		"output":[{"name":"y","data_type":"TYPE_FP32","dims":[]}],"dynamic_batching":{"max_queue_delay_microseconds":0}}`, answer)
	for _, version := range []string{"3", "0", "01", "+1", "-1", "x", "99999999999999999999"} {
		status, answer, _ := call(h, "GET", "/v2/models/m/versions/"+version, "")
		require.Equal(t, 404, status)
		require.Contains(t, answer, fmt.Sprintf(`model \"m\" has no version \"%s\", it has [1 2]`, version))
	}
	old, err = h.Unload("m", 2)
	require.NoError(t, err)
	require.Same(t, second, old)
	_, answer, _ = call(h, "POST", "/v2/models/m/infer", one)
	require.Contains(t, answer, `"data":[1]`)
	_, err = h.Unload("m", 2)
	require.ErrorContains(t, err, `serve: there is no version 2 of a model "m"`)
	_, err = h.Unload("m", 1)
	require.NoError(t, err)
	status, answer, _ := call(h, "GET", "/v2/models/m", "")
	require.Equal(t, 404, status)
	require.Contains(t, answer, `there is no model \"m\"; there are []`)
	_, err = h.Load("m", 0, first)
	require.ErrorContains(t, err, `the version of model "m" is 0, expected 1 or more`)
}

// Load returns the old batcher when the requests that use it are answered, by it; those that come meanwhile have the
// new one.
func TestHandler_loadWaitsForRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, hold := make(chan struct{}), make(chan struct{})
		first, second := times(t, 1, begun, hold), times(t, 2, nil, nil)
		h, err := serve.NewHandler(map[string]*serve.Batcher{"m": first}, serve.Options{})
		require.NoError(t, err)
		post := func() <-chan string {
			came := make(chan string, 1)
			go func() {
				_, answer, _ := call(h, "POST", "/v2/models/m/infer", one)
				came <- answer
			}()
			return came
		}
		running := post()
		<-begun
		loaded := make(chan *serve.Batcher, 1)
		go func() {
			old, err := h.Load("m", 1, second)
			if err != nil {
				t.Error(err)
			}
			loaded <- old
		}()
		synctest.Wait()
		require.Empty(t, loaded)
		require.Contains(t, <-post(), `"data":[2]`)
		close(hold)
		require.Contains(t, <-running, `"data":[1]`)
		require.Same(t, first, <-loaded)
	})
}

// Of many requests during many reloads none is lost, though each old batcher is closed at once.
func TestHandler_reloadsLoseNoRequest(t *testing.T) {
	h, err := serve.NewHandler(map[string]*serve.Batcher{"m": times(t, 1, nil, nil)}, serve.Options{})
	require.NoError(t, err)
	var group sync.WaitGroup
	var answered atomic.Int64
	done := make(chan struct{})
	for range 4 {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if status, answer, _ := call(h, "POST", "/v2/models/m/infer", one); status != 200 {
					t.Errorf("%d: %s", status, answer)
					return
				}
				answered.Add(1)
			}
		})
	}
	for i := range 20 {
		for before := answered.Load(); answered.Load() < before+4 && !t.Failed(); {
			_, _, _ = call(h, "GET", "/v2/health/live", "")
		}
		old, err := h.Load("m", 1, times(t, float32(i), nil, nil))
		require.NoError(t, err)
		require.NoError(t, old.Close())
	}
	close(done)
	group.Wait()
	t.Logf("%d requests during 20 reloads, 0 lost", answered.Load())
}
