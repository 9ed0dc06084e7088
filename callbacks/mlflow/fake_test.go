package mlflow_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// fake is a server with the part of MLflow's API that a record needs.
type fake struct {
	*httptest.Server
	// fault, if set, answers in place of the server, or returns false.
	fault func(w http.ResponseWriter, r *http.Request, api string) bool

	mu       sync.Mutex
	requests map[string]int // by API
	header   http.Header    // of the newest
	deleted  bool
	runs     []*fakeRun
	largest  [4]int // metrics, params, tags and bytes of a batch
}

type fakeRun struct {
	id, name, status string
	params, tags     map[string]string
	values           map[string][]fakeValue
	files            map[string]string
}

type fakeValue struct {
	Key       string
	Value     any
	Step      int64
	Timestamp int64
}

func newFake(t *testing.T) *fake {
	f := offline()
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// offline is without a listener, which synctest cannot wait for.
func offline() *fake { return &fake{requests: map[string]int{}} }

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, api, _ := strings.Cut(r.URL.Path, "/api/2.0/mlflow/")
	f.mu.Lock()
	f.requests[api]++
	f.header = r.Header
	fault := f.fault
	f.mu.Unlock()
	if fault != nil && fault(w, r, api) {
		return
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, name, ok := strings.Cut(r.URL.Path, "/api/2.0/mlflow-artifacts/artifacts/"); ok {
		id, file, _ := strings.Cut(strings.TrimPrefix(name, "7/"), "/artifacts/")
		f.run(id).files[file] = string(text)
		return
	}
	var q struct {
		Name, Status, Filter string
		RunID                string `json:"run_id"`
		RunName              string `json:"run_name"`
		Metrics              []fakeValue
		Params, Tags         []struct{ Key, Value string }
	}
	if len(text) > 0 && json.Unmarshal(text, &q) != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	answer := map[string]any{}
	switch api {
	case "experiments/get-by-name":
		if f.requests["experiments/create"] == 0 {
			w.WriteHeader(http.StatusNotFound)
			answer["error_code"] = "RESOURCE_DOES_NOT_EXIST"
			break
		}
		stage := map[bool]string{true: "deleted", false: "active"}[f.deleted]
		answer["experiment"] = map[string]string{"experiment_id": "7", "lifecycle_stage": stage}
	case "runs/search":
		for _, r := range f.runs {
			if q.Filter == fmt.Sprintf("tags.`lazo.run` = '%s'", r.tags["lazo.run"]) {
				answer["runs"] = []any{r.answer()}
			}
		}
	case "runs/create":
		r := &fakeRun{id: fmt.Sprint("r", len(f.runs)), name: q.RunName, status: "RUNNING", params: map[string]string{}, tags: map[string]string{},
			values: map[string][]fakeValue{}, files: map[string]string{}}
		for _, t := range q.Tags {
			r.tags[t.Key] = t.Value
		}
		f.runs = append(f.runs, r)
		answer["run"] = r.answer()
	case "runs/update":
		f.run(q.RunID).status = q.Status
	case "runs/log-batch":
		for i, n := range []int{len(q.Metrics), len(q.Params), len(q.Tags), len(text)} {
			f.largest[i] = max(f.largest[i], n)
		}
		r := f.run(q.RunID)
		for _, p := range q.Params {
			if was, known := r.params[p.Key]; known && was != p.Value {
				w.WriteHeader(http.StatusBadRequest)
				answer["error_code"] = "INVALID_PARAMETER_VALUE"
			}
			r.params[p.Key] = p.Value
		}
		for _, t := range q.Tags {
			r.tags[t.Key] = t.Value
		}
		for _, m := range q.Metrics {
			r.values[m.Key] = append(r.values[m.Key], m)
		}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (f *fake) run(id string) *fakeRun {
	for _, r := range f.runs {
		if r.id == id {
			return r
		}
	}
	return &fakeRun{params: map[string]string{}, tags: map[string]string{}, values: map[string][]fakeValue{}, files: map[string]string{}}
}

func (r *fakeRun) answer() map[string]any {
	var params []map[string]string
	for k, v := range r.params {
		params = append(params, map[string]string{"key": k, "value": v})
	}
	return map[string]any{"info": map[string]string{"run_id": r.id, "artifact_uri": "mlflow-artifacts:/7/" + r.id + "/artifacts"}, "data": map[string]any{"params": params}}
}
