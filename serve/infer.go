package serve

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
)

func (h *Handler) infer(c *call) (reply, error) {
	text, binary, err := split(c.body, c.r.Header.Get(jsonSize))
	var q *inference
	if err == nil {
		q, err = parse(text, c.model.batcher)
	}
	switch {
	case errors.Is(err, errLarge):
		return reply{}, failed(http.StatusRequestEntityTooLarge, "%v", err)
	case err != nil:
		return reply{}, failed(http.StatusBadRequest, "the body: %v", err)
	}
	c.told.Rows = q.fit.rows
	r, err := q.request(c.r.Context(), binary)
	if err != nil {
		return reply{}, err
	}
	outputs, queued, err := c.model.batcher.ask(c.r.Context(), r)
	c.told.Queued = queued
	return q.answer(c.model, outputs, err)
}

// err may be of some outputs, and matters only if they are requested.
func (q *inference) answer(v *version, outputs map[string]data.Array, err error) (reply, error) {
	var without graphs.OutputErrors
	if err != nil && (len(q.outputs) == 0 || !errors.As(err, &without)) {
		return reply{}, err
	}
	if len(q.outputs) == 0 {
		for _, name := range slices.Sorted(maps.Keys(outputs)) {
			q.outputs = append(q.outputs, wanted{name: name})
		}
	}
	for _, o := range q.outputs {
		if err := without[o.name]; err != nil {
			return reply{}, fmt.Errorf("serve: predict: %w", graphs.Inner(err))
		}
		if _, ok := outputs[o.name]; !ok {
			return reply{}, failed(http.StatusBadRequest, "%v", noOutput(o.name, tensorsOf(outputs)))
		}
	}
	head, err := json.Marshal(struct {
		Model   string `json:"model_name"`
		Version string `json:"model_version"`
		ID      string `json:"id,omitempty"`
	}{v.name, strconv.Itoa(v.number), q.id})
	if err != nil {
		return reply{}, err
	}
	text, binary := append(head[:len(head)-1], `,"outputs":[`...), []byte(nil)
	for i, o := range q.outputs {
		a := outputs[o.name]
		head, err := json.Marshal(form{o.name, datatypes[a.DType()], a.Dims})
		if err != nil {
			return reply{}, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, head[:len(head)-1]...)
		switch known := datatypes[a.DType()] != ""; {
		case !known:
			return reply{}, fmt.Errorf("output %q: its elements are %T, for which the protocol has no name", o.name, a.Flat)
		case isTrue(cmp.Or(o.binary, q.binary)):
			from := len(binary)
			binary, err = appendBinary(binary, a)
			text = fmt.Appendf(text, `,"parameters":{"binary_data_size":%d}`, len(binary)-from)
		default:
			text, err = appendJSON(append(text, `,"data":`...), a)
		}
		if err != nil {
			return reply{}, failed(http.StatusInternalServerError, "output %q: %v", o.name, err)
		}
		text = append(text, '}')
	}
	text = append(text, `]}`...)
	if binary == nil {
		return reply{text: text}, nil
	}
	return reply{text: append(text, binary...), json: len(text)}, nil
}

func isTrue(b *bool) bool { return b != nil && *b }
