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

// Limits are those of a [Handler]. None may be below 0.
type Limits struct {
	// MaxBody is the most bytes that the body of a request may have; 16 MiB if it is 0.
	MaxBody int64
	// Timeout is how long an inference may take, from the end of its body on; 0 leaves that to the request's context.
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
// with /versions/1 behind the name of a model, too. Each model has version 1. Datatypes are BOOL, INT8 to INT64, UINT8
// to UINT64, FP32 and FP64, and of outputs BYTES, which are texts, as the names of classes; a tensor's data is a list,
// flat or nested. There are no extensions. An error is {"error": text}, with the status
//
//	400  the request is not what the protocol or the model takes     404  there is no such model, version or path
//	405  another method is expected                                  413  the body, or the batch, is too large
//	500  the model failed                                            503  the queue is full, or the model not ready: later
//	504  it took longer than Limits.Timeout
type Handler struct {
	models   map[string]*Batcher
	limits   Limits
	mux      *http.ServeMux
	draining atomic.Bool
}

// NewHandler makes a handler of models by their names.
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

// Drain has the server say that it is not ready, so that no new requests are sent to it. Those that come are answered
// all the same, and their connection is closed behind the answer, which says so.
//
// http.Server.Shutdown waits for requests and cuts connections that are between two, so that a client which is just
// sending its next one loses it. Go on for a while behind Drain, until whoever sends requests has seen that the server
// is not ready and each client has had an answer, and call Shutdown then.
func (h *Handler) Drain() { h.draining.Store(true) }

// problem is an error with its status.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

func failed(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

// write writes an answer, or an error with its status.
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
		text, _ = json.Marshal(map[string]string{"error": err.Error()}) // a map of strings always goes
	}
	_, _ = w.Write(text) // a client that has gone is no fault
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
	return failed(http.StatusServiceUnavailable, "model %q is not ready: Batcher.Warm has not come to its end, or it is closed", name)
}

// model is the one that a path names.
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

// form is a tensor of a model's metadata.
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
	if !m.Ready() { // the outputs are not known
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

// inference is the body of an inference. What it has beside these is for extensions, of which there are none.
type inference struct {
	ID     string `json:"id"`
	Inputs []struct {
		form
		Data json.RawMessage `json:"data"`
		List *int            `json:"data:list"` // its number, as cut has it
	} `json:"inputs"`
	Outputs []struct {
		Name string `json:"name"`
	} `json:"outputs"`
}

// inferred is the answer.
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
	var without graphs.OutputErrors // those that nobody asks for fail no answer
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

// read reads the body of an inference.
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
			return asked, batch, failed(http.StatusBadRequest, "input %q is there twice", in.Name)
		}
		batch.Fields = append(batch.Fields, data.Named(in.Name, flat, in.Shape...))
	}
	return asked, batch, nil
}

// jsonOf is what JSON has for a type.
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

// datatypes are the protocol's names of types, by data.Array's.
var datatypes = map[string]string{"bool": "BOOL", "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64",
	"uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "float32": "FP32", "float64": "FP64", "string": "BYTES"}

// known are those that inputs may have.
func known() string {
	names := slices.DeleteFunc(slices.Sorted(maps.Values(datatypes)), func(name string) bool { return name == "BYTES" })
	return strings.Join(names, ", ")
}
