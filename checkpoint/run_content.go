package checkpoint

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

type position struct {
	Steps   int64         `json:"steps"`
	Samples int64         `json:"samples"`
	Epochs  int64         `json:"epochs,omitempty"`
	Time    time.Duration `json:"time"`
	Date    loop.Date     `json:"date"`
}

func (p position) check() error {
	if err := loop.Elapsed(p).Check(); err != nil {
		return fmt.Errorf("section %q: expected 0 to 2^62 of each: %w", loopSection, err)
	}
	return nil
}

func (s *saving) content(ctx context.Context, r loop.Report, metrics map[string]float64) (Content, error) {
	state, ok := abilities.StateAs[State](r)
	if !ok {
		return Content{}, fmt.Errorf("checkpoint: a state of type %T cannot be saved: give it the method Content of State", r.State())
	}
	at := position(r.Elapsed)
	if err := at.check(); err != nil {
		return Content{}, fmt.Errorf("checkpoint: %w", err)
	}
	given, err := state.Content(ctx)
	if err != nil {
		return Content{}, fmt.Errorf("checkpoint: the state: %w", err)
	}
	if err := s.history.follow(r.History); err != nil {
		return Content{}, fmt.Errorf("checkpoint: %w", err)
	}
	text := s.history.json()
	c := Content{
		Tensors: append(given.Tensors[:len(given.Tensors):len(given.Tensors)],
			Tensor{Name: historyTensor, DType: safetensors.U8, Dims: []int{len(text)}, Data: text}),
		Metrics: map[string]float64{},
		Sections: map[string]any{
			loopSection:     at,
			versionsSection: versions(state),
			settingsSection: noted(s.inForce(settingsOf(state))),
		},
		Share: given.Share,
	}
	if ended := endedOf(r); ended != nil {
		c.Sections[endedSection] = ended
	}
	maps.Copy(c.Metrics, given.Metrics)
	maps.Copy(c.Metrics, metrics)
	for name, x := range given.Sections {
		if err := addSection(c, name, x); err != nil {
			return Content{}, err
		}
	}
	if s.Same != nil {
		c.Sections[sameSection] = s.Same
	}
	for name, x := range s.Also {
		if dtype, is := numbersIn(reflect.ValueOf(x)); is {
			t, err := numbersTensor(name, dtype, x)
			if err != nil {
				return Content{}, err
			}
			c.Tensors = append(c.Tensors, t)
			continue
		}
		if err := addSection(c, name, x); err != nil {
			return Content{}, err
		}
	}
	return c, nil
}

func addSection(c Content, section string, x any) error {
	if _, taken := c.Sections[section]; taken {
		return fmt.Errorf("checkpoint: the section %q already exists; use another name", section)
	}
	c.Sections[section] = x
	return nil
}

// follow encodes only new rows.
type rows struct {
	text []byte // with ",\n" between
	n    int
	last int64
}

const rowBreak = ",\n"

func (h *rows) follow(history *loop.History) error {
	if history == nil {
		*h = rows{}
		return nil
	}
	fresh := history
	if h.n > 0 {
		fresh = history.Since(h.last)
	}
	if h.n+fresh.Len() != history.Len() { // rows were removed, or added to a saved turn
		*h, fresh = rows{}, history
	}
	if fresh.Len() == 0 {
		return nil
	}
	var b bytes.Buffer
	if err := fresh.WriteJSON(&b); err != nil {
		*h = rows{}
		return err
	}
	if h.n > 0 {
		h.text = append(h.text, rowBreak...)
	}
	h.text = append(h.text, bytes.TrimSuffix(bytes.TrimPrefix(b.Bytes(), []byte("[\n")), []byte("\n]\n"))...)
	for e := range fresh.Rows() {
		h.last = e.Steps
	}
	h.n += fresh.Len()
	return nil
}

func (h *rows) json() []byte { return append(append([]byte("[\n"), h.text...), "\n]\n"...) }
