package openai

import (
	"context"
	"crypto/rand"
	"errors"
	random "math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/serve"
)

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

type message struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

type choice struct {
	Index    int      `json:"index"`
	Message  *message `json:"message,omitempty"`
	Delta    *message `json:"delta,omitempty"`
	Text     *string  `json:"text,omitempty"`
	Logprobs any      `json:"logprobs"`
	Finish   *string  `json:"finish_reason"`
}

type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

func (c *call) complete(asChat bool) error {
	of := continuations
	if asChat {
		of = chats
	}
	m, q, err := c.read(of)
	if err != nil {
		return err
	}
	if m.Generator == nil {
		return wrong("model", "the model %q makes embeddings only", m.name)
	}
	leave, err := m.enter(c.r.Context())
	if err != nil {
		return err
	}
	defer leave()
	prompts, err := m.prompts(q, asChat) // a template may compute much
	if err != nil {
		return err
	}
	w := &writing{call: c, chat: asChat, q: q, answer: completion{ID: "cmpl-" + rand.Text(), Object: "text_completion", Created: time.Now().Unix(), Model: m.name}}
	if asChat {
		w.answer.ID, w.answer.Object = "chat"+w.answer.ID, "chat.completion"
	}
	for _, ids := range prompts {
		w.used.Prompt += len(ids)
	}
	w.texts, w.ends = make([]strings.Builder, len(prompts)), make([]*string, len(prompts))
	settings, first := m.settings(q), 0
	for together := range slices.Chunk(prompts, m.Generator.Rows()) {
		for p, err := range m.Generator.Generate(c.r.Context(), together, settings) {
			switch {
			case err == nil:
			case c.r.Context().Err() != nil:
				return c.ended(err)
			case errors.Is(err, serve.ErrInput):
				return wrong(of.needs[1], "%v", listed.Short(err))
			default:
				return err
			}
			p.Prompt += first
			if err := w.add(p); err != nil {
				return err
			}
		}
		first += len(together)
		settings.Seed += uint64(len(together)) // as in one batch
	}
	leave()
	return w.end()
}

func (c *call) read(of kind) (*served, *request, error) {
	content, err := c.body()
	if err != nil {
		return nil, nil, err
	}
	q, err := of.parse(content)
	if err != nil {
		return nil, nil, err
	}
	if err := context.Cause(c.r.Context()); err != nil {
		return nil, nil, err
	}
	m, err := c.model(q.model)
	return m, q, err
}

func (m *served) prompts(q *request, asChat bool) (all [][]int32, err error) {
	param := "prompt"
	if asChat {
		param = "messages"
		if m.noChat != nil {
			return nil, wrong("model", "the model %q has no conversations: %v", m.name, m.noChat)
		}
		whole, err := m.template.Apply(q.messages, true)
		if err != nil {
			return nil, wrong(param, "%v", listed.Short(err))
		}
		of, err := m.Tokenizer.EncodeText(text.Input{Text: whole, Bare: true})
		if err != nil {
			return nil, wrong(param, "%v", listed.Short(err))
		}
		all = [][]int32{of.IDs}
	}
	for _, in := range q.inputs {
		ids, err := in.tokens(m.Tokenizer)
		if err != nil {
			return nil, wrong(param, "%v", listed.Short(err))
		}
		all = append(all, ids)
	}
	if len(all) > mostInputs {
		return nil, wrong(param, "there are %d prompts, expected at most %d", len(all), mostInputs)
	}
	for _, ids := range all {
		if err := m.fits(param, ids, m.Generator.Places()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (m *served) fits(param string, ids []int32, most int) error {
	switch size := int32(m.Tokenizer.Size()); {
	case len(ids) == 0:
		return wrong(param, "%s has no tokens", param)
	case len(ids) > most:
		err := wrong(param, "%s has %d tokens, expected at most %d", param, len(ids), most).(*problem)
		err.code = "context_length_exceeded"
		return err
	case slices.Min(ids) < 0 || slices.Max(ids) >= size:
		return wrong(param, "%s has the tokens %d to %d, expected tokens from 0 to %d", param, slices.Min(ids), slices.Max(ids), size-1)
	}
	return nil
}

// settings draw others for each request without a seed.
func (m *served) settings(q *request) pretrained.Generation {
	of := m.Generation
	for to, v := range map[*float64]*float64{&of.Sampling.Temperature: q.sampling.temperature, &of.Sampling.TopP: q.sampling.topP, &of.Sampling.MinP: q.sampling.minP,
		&of.Sampling.Repetition: q.sampling.repetition} {
		if v != nil {
			*to = *v
		}
	}
	if q.topK != nil {
		of.Sampling.TopK = *q.topK
	}
	if of.Seed = random.Uint64(); q.seed != nil {
		of.Seed = uint64(*q.seed)
	}
	if q.most != nil {
		of.Most = *q.most
	}
	of.StopTexts = append(slices.Clone(of.StopTexts), q.stops...)
	return of
}

type writing struct {
	*call
	chat   bool
	q      *request
	answer completion
	texts  []strings.Builder
	ends   []*string
	used   usage
}

func (w *writing) add(p pretrained.Piece) error {
	w.used.Completion++
	var end *string
	if p.End != "" {
		end = &p.End
	}
	if !w.q.stream {
		w.texts[p.Prompt].WriteString(p.Text)
		w.ends[p.Prompt] = end
		return nil
	}
	if w.chat && w.used.Completion == 1 {
		if err := w.part(choice{Delta: &message{"assistant", new(string)}}); err != nil {
			return err
		}
	}
	if p.Text == "" && end == nil {
		return nil
	}
	one := choice{Index: p.Prompt, Text: &p.Text, Finish: end}
	if w.chat {
		if one.Text, one.Delta = nil, (&message{}); p.Text != "" {
			one.Delta.Content = &p.Text
		}
	}
	return w.part(one)
}

func (w *writing) part(choices ...choice) error {
	of := w.answer
	if of.Choices = append([]choice{}, choices...); w.chat {
		of.Object += ".chunk"
	}
	if len(choices) == 0 {
		of.Usage = &w.used
	}
	return w.event(of)
}

func (w *writing) end() error {
	w.used.Total = w.used.Prompt + w.used.Completion
	if w.q.stream {
		if w.q.usage {
			if err := w.part(); err != nil {
				return err
			}
		}
		return w.raw("[DONE]")
	}
	for i := range w.texts {
		whole := w.texts[i].String()
		one := choice{Index: i, Text: &whole, Finish: w.ends[i]}
		if w.chat {
			one.Text, one.Message = nil, &message{"assistant", &whole}
		}
		w.answer.Choices = append(w.answer.Choices, one)
	}
	w.answer.Usage = &w.used
	return w.call.answer(w.answer)
}
