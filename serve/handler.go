package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
)

// Limits are a [Handler]'s limits. Negative values are errors.
type Limits struct {
	// MaxBody is the maximum size of a request's body in bytes; 0 means 16 MiB.
	MaxBody int64
	// Timeout is the maximum duration of an inference after its body was read; 0 means only the request's context.
	Timeout time.Duration
}

// Handler serves models by the Open Inference Protocol, version 2, as REST with tensors in JSON:
//
//	GET  /v2                              the server: name, version, extensions
//	GET  /v2/health/live                  200 while the process answers
//	GET  /v2/health/ready                 200 when all models are ready, and before Drain; else 503
//	GET  /v2/models/{name}                the model: its inputs and outputs
//	GET  /v2/models/{name}/ready          200 when the model is ready; else 503
//	POST /v2/models/{name}/infer          an inference
//
// /versions/1, the only version, may follow a model's name. Datatypes are BOOL, INT8 to INT64, UINT8 to UINT64, FP32
// and FP64, and for outputs BYTES, texts such as class names. A tensor's data is a flat or nested list. There are no
// extensions. An error is {"error": text} with the status
//
//	400  not what the protocol or the model takes      404  no such model, version or path
//	405  another method is expected                    413  the body, or the batch, is too large
//	500  the model failed                              503  the queue is full, or the model not ready: later
//	504  it took longer than Limits.Timeout
type Handler struct {
	models   map[string]*Batcher
	limits   Limits
	mux      *http.ServeMux
	draining atomic.Bool
}

// NewHandler returns a handler of models by name.
func NewHandler(models map[string]*Batcher, limits Limits) (*Handler, error) {
	for _, name := range slices.Sorted(maps.Keys(models)) {
		switch {
		case models[name] == nil:
			return nil, fmt.Errorf("serve: model %q is nil: expected a batcher, see New", name)
		case name == "" || strings.Contains(name, "/"):
			return nil, fmt.Errorf("serve: the name of a model is %q: expected one that can be a part of a path", name)
		}
	}
	if limits.MaxBody < 0 || limits.Timeout < 0 {
		return nil, fmt.Errorf("serve: MaxBody is %d and Timeout is %v, expected 0 (not given) or more", limits.MaxBody, limits.Timeout)
	}
	if limits.MaxBody == 0 {
		limits.MaxBody = 16 << 20
	}
	h := &Handler{models: maps.Clone(models), limits: limits, mux: http.NewServeMux()}
	on := func(method, path string, f func(*http.Request) (any, error)) {
		h.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != method {
				w.Header().Set("Allow", method)
				write(w, nil, failed(http.StatusMethodNotAllowed, "the method is %s, expected %s", r.Method, method))
				return
			}
			if r.Body != nil {
				r.Body = http.MaxBytesReader(w, r.Body, h.limits.MaxBody)
			}
			answer, err := f(r)
			write(w, answer, err)
		})
	}
	on("GET", "/v2", h.server)
	on("GET", "/v2/health/live", func(*http.Request) (any, error) { return map[string]bool{"live": true}, nil })
	on("GET", "/v2/health/ready", h.ready)
	for _, model := range []string{"/v2/models/{name}", "/v2/models/{name}/versions/{version}"} {
		on("GET", model, h.metadata)
		on("GET", model+"/ready", h.modelReady)
		on("POST", model+"/infer", h.infer)
	}
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		write(w, nil, failed(http.StatusNotFound, "there is no %s: expected /v2 or a path below it, see the Open Inference Protocol", r.URL.Path))
	})
	return h, nil
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	h.mux.ServeHTTP(w, r)
}

// Drain makes the server report that it is not ready. Requests are still answered; each response then closes its
// connection.
//
// http.Server.Shutdown closes idle connections, so a client that is just sending a request loses it. Before Shutdown,
// wait until load balancers have seen the status and each client had a response.
func (h *Handler) Drain() { h.draining.Store(true) }

type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

func failed(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

func write(w http.ResponseWriter, answer any, err error) {
	var text []byte
	if err == nil {
		text, err = json.Marshal(answer)
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		status := statusOf(err)
		if status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(status)
		text, _ = json.Marshal(map[string]string{"error": err.Error()}) // cannot fail
	}
	_, _ = w.Write(text) // the client may have left
}

func statusOf(err error) int {
	var known *problem
	switch {
	case errors.As(err, &known):
		return known.status
	case errors.Is(err, ErrInput):
		return http.StatusBadRequest
	case errors.Is(err, ErrFull), errors.Is(err, ErrClosed):
		return http.StatusServiceUnavailable
	case errors.Is(err, errTimeout):
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

var errTimeout = errors.New("the inference took too long")

func (h *Handler) server(*http.Request) (any, error) {
	return map[string]any{"name": "lazo", "version": "2", "extensions": []string{}}, nil
}

func (h *Handler) ready(*http.Request) (any, error) {
	if h.draining.Load() {
		return nil, failed(http.StatusServiceUnavailable, "the server is shutting down")
	}
	for _, name := range slices.Sorted(maps.Keys(h.models)) {
		if !h.models[name].Ready() {
			return nil, notReady(name)
		}
	}
	return map[string]bool{"ready": true}, nil
}

func notReady(name string) error {
	return failed(http.StatusServiceUnavailable, "model %q is not ready: Batcher.Warm was not called or has not ended, or the batcher is closed", name)
}

func (h *Handler) model(r *http.Request) (string, *Batcher, error) {
	name, version := r.PathValue("name"), r.PathValue("version")
	m := h.models[name]
	switch {
	case m == nil:
		return name, nil, failed(http.StatusNotFound, "there is no model %q; there are %q", name, slices.Sorted(maps.Keys(h.models)))
	case version != "" && version != "1":
		return name, nil, failed(http.StatusNotFound, "model %q has no version %q, it has %q", name, version, "1")
	}
	return name, m, nil
}

func (h *Handler) modelReady(r *http.Request) (any, error) {
	name, m, err := h.model(r)
	if err != nil {
		return nil, err
	}
	if !m.Ready() {
		return nil, notReady(name)
	}
	return map[string]any{"name": name, "ready": true}, nil
}

type form struct {
	Name     string `json:"name"`
	Datatype string `json:"datatype"`
	Shape    []int  `json:"shape"`
}

func (h *Handler) metadata(r *http.Request) (any, error) {
	name, m, err := h.model(r)
	if err != nil {
		return nil, err
	}
	if !m.Ready() { // the outputs are unknown
		return nil, notReady(name)
	}
	forms := func(list []Tensor) (forms []form) {
		for _, t := range list {
			forms = append(forms, form{t.Name, datatypes[t.DType], append([]int{-1}, t.Dims...)})
		}
		return forms
	}
	return map[string]any{"name": name, "versions": []string{"1"}, "platform": "lazo", "inputs": forms(m.Inputs()), "outputs": forms(m.Outputs())}, nil
}

// inference is the body of an inference. Other members are for extensions.
type inference struct {
	ID     string `json:"id"`
	Inputs []struct {
		form
		Data json.RawMessage `json:"data"`
		List *int            `json:"data:list"` // index in the lists of cut
	} `json:"inputs"`
	Outputs []struct {
		Name string `json:"name"`
	} `json:"outputs"`
}

type inferred struct {
	Model   string   `json:"model_name"`
	Version string   `json:"model_version"`
	ID      string   `json:"id,omitempty"`
	Outputs []tensor `json:"outputs"`
}

type tensor struct {
	form
	Data json.RawMessage `json:"data"`
}

func (h *Handler) infer(r *http.Request) (any, error) {
	name, m, err := h.model(r)
	if err != nil {
		return nil, err
	}
	asked, batch, err := h.read(r)
	if err != nil {
		return nil, err
	}
	if rows := batch.Fields[0].Array.Len(); rows > m.set.MaxBatch {
		return nil, failed(http.StatusRequestEntityTooLarge, "the batch has %d examples, expected at most %d", rows, m.set.MaxBatch)
	}
	ctx := r.Context()
	if h.limits.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, h.limits.Timeout, fmt.Errorf("%w: the limit is %v", errTimeout, h.limits.Timeout))
		defer stop()
	}
	outputs, err := m.Answer(ctx, batch)
	var without graphs.OutputErrors // failed outputs matter only if requested
	if err != nil && (len(asked.Outputs) == 0 || !errors.As(err, &without)) {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(outputs))
	if len(asked.Outputs) > 0 {
		names = nil
		for _, o := range asked.Outputs {
			names = append(names, o.Name)
		}
	}
	answer := inferred{Model: name, Version: "1", ID: asked.ID}
	for _, name := range names {
		a, ok := outputs[name]
		if err := without[name]; err != nil {
			return nil, fmt.Errorf("serve: predict: %w", graphs.Inner(err))
		}
		if !ok {
			return nil, failed(http.StatusBadRequest, "there is no output %q; there are %q", name, slices.Sorted(maps.Keys(outputs)))
		}
		text, err := encode(a)
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", name, err)
		}
		answer.Outputs = append(answer.Outputs, tensor{form{name, datatypes[a.DType()], a.Dims}, text})
	}
	return answer, nil
}

func (h *Handler) read(r *http.Request) (asked inference, batch data.Batch, err error) {
	if r.Header.Get("Inference-Header-Content-Length") != "" {
		return asked, batch, failed(http.StatusBadRequest, "the body has binary tensors, which this server does not take: send their data as JSON")
	}
	text, err := io.ReadAll(r.Body)
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return asked, batch, failed(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", large.Limit)
	}
	text, lists := cut(text)
	if err == nil {
		err = json.Unmarshal(text, &asked)
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return asked, batch, failed(http.StatusBadRequest, "the body: %s is a JSON %s, expected %s", cmp.Or(strings.ReplaceAll(wrong.Field, "form.", ""), "it"), wrong.Value, jsonOf(wrong.Type))
	}
	if err != nil {
		return asked, batch, failed(http.StatusBadRequest, "the body: %v", err)
	}
	if len(asked.Inputs) == 0 {
		return asked, batch, failed(http.StatusBadRequest, `the body has no inputs: expected {"inputs": [{"name": …, "datatype": …, "shape": […], "data": […]}]}`)
	}
	for _, in := range asked.Inputs {
		if at := in.List; at != nil && *at >= 0 && *at < len(lists) {
			in.Data = lists[*at]
		}
		flat, err := decode(in.Data, in.Datatype, in.Shape)
		if err != nil {
			return asked, batch, failed(http.StatusBadRequest, "input %q: %v", in.Name, err)
		}
		if _, err := batch.Field(in.Name); err == nil {
			return asked, batch, failed(http.StatusBadRequest, "input %q appears twice", in.Name)
		}
		batch.Fields = append(batch.Fields, data.Named(in.Name, flat, in.Shape...))
	}
	return asked, batch, nil
}

func jsonOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	case reflect.Int:
		return "a whole number"
	}
	return "an object"
}

var datatypes = map[string]string{"bool": "BOOL", "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64",
	"uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "float32": "FP32", "float64": "FP64", "string": "BYTES"}

func known() string {
	names := slices.DeleteFunc(slices.Sorted(maps.Values(datatypes)), func(name string) bool { return name == "BYTES" })
	return strings.Join(names, ", ")
}
