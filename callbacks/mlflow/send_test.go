package mlflow_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks/mlflow"
	"github.com/lazo-ml/lazo/loop"
)

// direct calls the server without a network, so that a test's clock is its own.
type direct struct {
	*fake
	// fault answers in place of the server, or returns nil twice.
	fault func(r *http.Request) (*http.Response, error)
}

func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if d.fault != nil {
		if answer, err := d.fault(r); answer != nil || err != nil {
			return answer, err
		}
	}
	return d.serve(r), nil
}

func (d *direct) serve(r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	d.ServeHTTP(w, r)
	return w.Result()
}

func said(status int, body io.Reader) (*http.Response, error) {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body)}, nil
}

// faults are those of all requests.
var faults = map[string]func(r *http.Request) (*http.Response, error){
	"503": func(*http.Request) (*http.Response, error) { return said(503, strings.NewReader("")) },
	"401": func(*http.Request) (*http.Response, error) { return said(401, strings.NewReader("who are you?")) },
	"429": func(*http.Request) (*http.Response, error) {
		return said(429, strings.NewReader(`{"error_code": "BUSY"}`))
	},
	"301":     func(*http.Request) (*http.Response, error) { return said(301, strings.NewReader("")) },
	"closed":  func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED },
	"garbage": func(*http.Request) (*http.Response, error) { return said(200, strings.NewReader("<html>")) },
	"empty":   func(*http.Request) (*http.Response, error) { return said(200, strings.NewReader("{}")) },
	"endless": func(*http.Request) (*http.Response, error) { return said(200, zeros{}) },
	"reset": func(*http.Request) (*http.Response, error) {
		return said(200, io.MultiReader(strings.NewReader(`{"exp`), iotest.ErrReader(syscall.ECONNRESET)))
	},
	"hangs": func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// seconds is a training of a second per step, without time for the record, which returns how long the run took.
func seconds(t *testing.T, steps int, d *direct, each int) (ran, ended time.Duration) {
	step := func(_ context.Context, n, _ int) (int, loop.Logs, error) {
		time.Sleep(time.Second)
		var logs loop.Logs
		for i := range each {
			logs.Metric(fmt.Sprint("m", i), float64(n))
		}
		return n + 1, logs, nil
	}
	batches := loop.Data[int](func(yield func(int, error) bool) {
		for i := 0; i < steps && yield(i, nil); i++ {
		}
	})
	start := time.Now()
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, batches,
		loop.Watch(loop.EachStep, func(context.Context, loop.Report) error { ran = time.Since(start); return nil }),
		mlflow.Record(mlflow.Run{URL: "http://host/below/", User: "me", Password: "secret", Transport: d, Parameters: map[string]any{"a": 1}}, loop.EachStep))
	require.NoError(t, err)
	return ran, time.Since(start) - ran
}

// A server with a fault never stops or slows a run, and its end waits for two requests alone. The log has what is lost,
// once.
func TestFaults(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			logs := warnings(t)
			synctest.Test(t, func(t *testing.T) {
				d := &direct{offline(), fault}
				ran, ended := seconds(t, 100, d, 2)
				require.Equal(t, 100*time.Second, ran, "no step waited")
				require.LessOrEqual(t, ended, 32*time.Second)
				require.Empty(t, d.runs)
			})
			require.Equal(t, 1, strings.Count(logs(), "mlflow: not recorded"), logs())
			require.Equal(t, 1, strings.Count(logs(), "mlflow: the record is incomplete"))
			require.Contains(t, logs(), "values=200 from_step=1 to_step=100 unread_iterations=0 others=\"[a status]\"")
			require.NotContains(t, logs(), "secret")
			require.NotContains(t, logs(), "below")
		})
	}
}

// After an outage all values are recorded: those of the outage waited.
func TestFaults_thatEnd(t *testing.T) {
	for name, fault := range faults {
		if name == "empty" { // as the answer to a batch that is recorded
			continue
		}
		t.Run(name, func(t *testing.T) {
			logs := warnings(t)
			synctest.Test(t, func(t *testing.T) {
				d, begin := &direct{fake: offline()}, time.Now()
				d.fault = func(r *http.Request) (*http.Response, error) {
					if at := time.Since(begin); at > 20*time.Second && at < 60*time.Second {
						return fault(r)
					}
					return nil, nil
				}
				ran, _ := seconds(t, 100, d, 2)
				require.Equal(t, 100*time.Second, ran)
				require.Len(t, d.runs, 1)
				require.Equal(t, "FINISHED", d.runs[0].status)
				for i, v := range d.runs[0].values["m1"] {
					require.EqualValues(t, i+1, v.Step)
				}
				require.Len(t, d.runs[0].values["m1"], 100)
			})
			require.Equal(t, 1, strings.Count(logs(), "mlflow: not recorded"), logs())
			require.Equal(t, 1, strings.Count(logs(), "mlflow: recorded again"))
			require.NotContains(t, logs(), "incomplete")
		})
	}
}

// A slow server delays no step, and gets all values.
func TestFaults_slow(t *testing.T) {
	logs := warnings(t)
	synctest.Test(t, func(t *testing.T) {
		d := &direct{offline(), func(*http.Request) (*http.Response, error) { time.Sleep(4 * time.Second); return nil, nil }}
		ran, _ := seconds(t, 100, d, 2)
		require.Equal(t, 100*time.Second, ran)
		require.Len(t, d.runs[0].values["m0"], 100)
		require.Equal(t, "FINISHED", d.runs[0].status)
	})
	require.Empty(t, logs())
}

// What waits is bounded: newer values are lost, and reported.
func TestFaults_boundedMemory(t *testing.T) {
	logs := warnings(t)
	synctest.Test(t, func(t *testing.T) {
		d, begin := &direct{fake: offline()}, time.Now()
		d.fault = func(*http.Request) (*http.Response, error) {
			if time.Since(begin) < 1500*time.Second {
				return nil, errors.New("out")
			}
			return nil, nil
		}
		seconds(t, 2000, d, 200)
		require.Equal(t, "FINISHED", d.runs[0].status)
		require.EqualValues(t, 1, d.runs[0].values["m199"][0].Step)
	})
	require.Equal(t, 1, strings.Count(logs(), "mlflow: lost from this step on"), logs())
	require.Regexp(t, `mlflow: recorded again.* lost=\d+ lost_from=1001 `, logs())
	require.Regexp(t, `mlflow: the record is incomplete.* values=\d+ from_step=1001 `, logs())
}

// The answer to the creation of a run is lost: there is one run all the same.
func TestFaults_aLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, lost := &direct{fake: offline()}, false
		d.fault = func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "runs/create") && !lost {
				lost = true
				d.serve(r)
				return nil, io.ErrUnexpectedEOF
			}
			return nil, nil
		}
		seconds(t, 10, d, 1)
		require.Len(t, d.runs, 1)
		require.Len(t, d.runs[0].values["m0"], 10)
	})
}

// A part that the server refuses is left out, and reported; the rest is recorded.
func TestFaults_refused(t *testing.T) {
	logs := warnings(t)
	synctest.Test(t, func(t *testing.T) {
		d, refused := &direct{fake: offline()}, 0
		d.fault = func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "runs/log-batch") && refused < 2 {
				refused++
				return said(400, strings.NewReader(`{"error_code": "INVALID_PARAMETER_VALUE", "message": "no"}`))
			}
			return nil, nil
		}
		seconds(t, 10, d, 1)
		require.Empty(t, d.runs[0].params)
		require.NotEmpty(t, d.runs[0].values["m0"])
		require.Less(t, len(d.runs[0].values["m0"]), 10)
		require.Equal(t, "FINISHED", d.runs[0].status)
	})
	require.Equal(t, 1, strings.Count(logs(), "mlflow: the server refused a part of the record"))
	require.Contains(t, logs(), `others=[a] error="host: api/2.0/mlflow/runs/log-batch: the status is 400: INVALID_PARAMETER_VALUE: no"`)
}
