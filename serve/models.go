package serve

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lazo-ml/lazo/internal/listed"
)

type version struct {
	name    string
	number  int
	batcher *Batcher
	using   sync.WaitGroup
}

// Load adds or replaces a version of a model, a number from 1: later requests use the new batcher. Load waits for
// those that use the old one, and returns it for its Close, or nil. A request without a version uses the highest one.
func (h *Handler) Load(name string, number int, b *Batcher) (old *Batcher, err error) {
	switch {
	case b == nil:
		return nil, fmt.Errorf("serve: model %q is nil: expected a batcher, see New", name)
	case name == "" || strings.Contains(name, "/"):
		return nil, fmt.Errorf("serve: the name of a model is %q: expected one that can be a part of a path", name)
	case number < 1:
		return nil, fmt.Errorf("serve: the version of model %q is %d, expected 1 or more", name, number)
	}
	return h.replace(name, number, b), nil
}

// Unload removes a version as Load replaces it.
func (h *Handler) Unload(name string, number int) (old *Batcher, err error) {
	if old = h.replace(name, number, nil); old == nil {
		return nil, fmt.Errorf("serve: there is no version %d of a model %q", number, name)
	}
	return old, nil
}

func (h *Handler) replace(name string, number int, b *Batcher) *Batcher {
	h.mu.Lock()
	versions := h.models[name]
	old := versions[number]
	switch {
	case b == nil:
		delete(versions, number)
	case versions == nil:
		versions = map[int]*version{}
		h.models[name] = versions
		fallthrough
	default:
		versions[number] = &version{name: name, number: number, batcher: b}
	}
	if len(versions) == 0 {
		delete(h.models, name)
	}
	h.mu.Unlock()
	if old == nil {
		return nil
	}
	old.using.Wait() // no request begins with it
	return old.batcher
}

// The model is not unloaded before done.
func (h *Handler) use(r *http.Request) (v *version, done func(), err error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	name, number := r.PathValue("name"), r.PathValue("version")
	versions := h.models[name]
	if versions == nil {
		return nil, nil, failed(http.StatusNotFound, "there is no model %s; there are %s", listed.Quoted(name), listed.Some(slices.Sorted(maps.Keys(h.models))))
	}
	numbers := numbersOf(versions)
	v = versions[numbers[len(numbers)-1]]
	if number != "" {
		n, err := strconv.Atoi(number)
		if v = versions[n]; err != nil || v == nil || strconv.Itoa(n) != number {
			return nil, nil, failed(http.StatusNotFound, "model %q has no version %s, it has %d", name, listed.Quoted(number), numbers)
		}
	}
	v.using.Add(1)
	return v, v.using.Done, nil
}

func numbersOf(versions map[int]*version) []int { return slices.Sorted(maps.Keys(versions)) }

func (v *version) ready() error {
	if v.batcher.Ready() {
		return nil
	}
	return failed(http.StatusServiceUnavailable, "model %q is not ready: Batcher.Warm was not called or has not ended, or the batcher is closed", v.name)
}

func (h *Handler) all() (all []*version) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(h.models)) {
		for _, number := range numbersOf(h.models[name]) {
			all = append(all, h.models[name][number])
		}
	}
	return all
}

func (h *Handler) ready(*call) (reply, error) {
	if h.draining.Load() {
		return reply{}, failed(http.StatusServiceUnavailable, "the server is shutting down")
	}
	for _, v := range h.all() {
		if err := v.ready(); err != nil {
			return reply{}, err
		}
	}
	return inJSON(map[string]bool{"ready": true})
}

func (h *Handler) modelReady(c *call) (reply, error) {
	if err := c.model.ready(); err != nil {
		return reply{}, err
	}
	return inJSON(map[string]any{"name": c.model.name, "ready": true})
}

type form struct {
	Name     string `json:"name"`
	Datatype string `json:"datatype"`
	Shape    []int  `json:"shape"`
}

func (h *Handler) metadata(c *call) (reply, error) {
	if err := c.model.ready(); err != nil { // the outputs are unknown
		return reply{}, err
	}
	forms := func(list []Tensor) (forms []form) {
		for _, t := range list {
			forms = append(forms, form{t.Name, datatypes[t.DType], append([]int{-1}, t.Dims...)})
		}
		return forms
	}
	h.mu.RLock()
	var versions []string
	for _, number := range numbersOf(h.models[c.model.name]) {
		versions = append(versions, strconv.Itoa(number))
	}
	h.mu.RUnlock()
	b := c.model.batcher
	return inJSON(map[string]any{"name": c.model.name, "versions": versions, "platform": platform, "inputs": forms(b.Inputs()), "outputs": forms(b.Outputs())})
}

// Triton's model configuration, whose dims exclude the batch axis.
func (h *Handler) config(c *call) (reply, error) {
	if err := c.model.ready(); err != nil {
		return reply{}, err
	}
	type part struct {
		Name     string `json:"name"`
		DataType string `json:"data_type"`
		Dims     []int  `json:"dims"`
	}
	parts := func(list []Tensor) (parts []part) {
		for _, t := range list {
			kind := "TYPE_" + datatypes[t.DType]
			if t.DType == "string" {
				kind = "TYPE_STRING"
			}
			parts = append(parts, part{t.Name, kind, t.Dims})
		}
		return parts
	}
	b := c.model.batcher
	return inJSON(map[string]any{"name": c.model.name, "platform": platform, "backend": platform, "max_batch_size": b.set.MaxBatch,
		"input": parts(b.Inputs()), "output": parts(b.Outputs()),
		"dynamic_batching": map[string]any{"max_queue_delay_microseconds": b.set.Delay.Microseconds()}})
}

func (h *Handler) index(*call) (reply, error) {
	type row struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		State   string `json:"state"`
		Reason  string `json:"reason"`
	}
	rows := []row{}
	for _, v := range h.all() {
		r := row{v.name, strconv.Itoa(v.number), "READY", ""}
		if known := (*problem)(nil); errors.As(v.ready(), &known) {
			r.State, r.Reason = "UNAVAILABLE", known.text
		}
		rows = append(rows, r)
	}
	return inJSON(rows)
}
