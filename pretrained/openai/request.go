package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/data/text/chat"
	"github.com/lazo-ml/lazo/internal/document"
	"github.com/lazo-ml/lazo/internal/listed"
)

type request struct {
	model         string
	messages      []chat.Message
	inputs        []input
	sampling      struct{ temperature, topP, minP, repetition *float64 }
	topK, seed    *int
	most          *int
	stops         []string
	stream, usage bool
	base64        bool // the encoding of embeddings
	dimensions    *int
	given         []string
}

type input struct {
	text string
	ids  []int32
}

// kind is an endpoint: it has the readers of its fields, and the values that change nothing of others; nil: any value.
type kind struct {
	name    string
	fields  map[string]func(q *request, v value) error
	ignored map[string][]string
	needs   []string
}

type value struct {
	name, raw string
	numbers   bool
}

var always = map[string][]string{"user": nil, "metadata": nil, "store": nil, "service_tier": nil, "safety_identifier": nil, "prompt_cache_key": nil, "prompt_cache_retention": nil}

var settings = map[string]func(q *request, v value) error{
	"temperature":        func(q *request, v value) error { return v.number(&q.sampling.temperature, 0, 2) },
	"top_p":              func(q *request, v value) error { return v.number(&q.sampling.topP, 1e-9, 1) },
	"min_p":              func(q *request, v value) error { return v.number(&q.sampling.minP, 0, 1) },
	"repetition_penalty": func(q *request, v value) error { return v.number(&q.sampling.repetition, 1e-9, 1e9) },
	"top_k":              func(q *request, v value) error { return v.whole(&q.topK, 0) },
	"seed":               func(q *request, v value) error { return v.whole(&q.seed, -1<<63) },
	"max_tokens":         func(q *request, v value) error { return v.whole(&q.most, 1) },
	"stream":             func(q *request, v value) error { return read(v, &q.stream, "true or false") },
	"stream_options":     (*request).streamOptions,
	"stop":               (*request).stop,
}

var unchanged = map[string][]string{"n": {"1"}, "frequency_penalty": {"0", "0.0"}, "presence_penalty": {"0", "0.0"}, "logit_bias": {"{}"}}

var (
	chats = kind{"/v1/chat/completions", with(settings, map[string]func(q *request, v value) error{
		"messages":              (*request).conversation,
		"max_completion_tokens": func(q *request, v value) error { return v.whole(&q.most, 1) },
	}), with(always, unchanged, map[string][]string{"logprobs": {"false"}, "top_logprobs": {}, "response_format": {`{"type":"text"}`}, "tools": {"[]"}, "tool_choice": {`"none"`, `"auto"`},
		"functions": {"[]"}, "function_call": {`"none"`, `"auto"`}, "parallel_tool_calls": nil, "modalities": {`["text"]`}, "audio": {}, "prediction": {}, "reasoning_effort": {},
		"verbosity": {}, "web_search_options": {}}), []string{"model", "messages"}}
	continuations = kind{"/v1/completions", with(settings, map[string]func(q *request, v value) error{"prompt": (*request).input}),
		with(always, unchanged, map[string][]string{"best_of": {"1"}, "echo": {"false"}, "logprobs": {}, "suffix": {`""`}}), []string{"model", "prompt"}}
	embeddings = kind{"/v1/embeddings", map[string]func(q *request, v value) error{
		"input":           (*request).input,
		"dimensions":      func(q *request, v value) error { return v.whole(&q.dimensions, 1) },
		"encoding_format": (*request).encoding,
	}, always, []string{"model", "input"}}
)

func with[V any](maps ...map[string]V) map[string]V {
	all := map[string]V{}
	for _, m := range maps {
		for name, v := range m {
			all[name] = v
		}
	}
	return all
}

func (k kind) parse(content string) (*request, error) {
	d, err := document.New(content)
	q, known := &request{}, false
	if err == nil {
		err = d.Object("the body", func(name string) error {
			raw, numbers, err := d.Text()
			if err != nil || raw == "null" {
				return err
			}
			v := value{name, raw, numbers}
			reader, takes := k.fields[name]
			values, ignores := k.ignored[name]
			q.given = append(q.given, name)
			switch {
			case name == "model":
				return read(v, &q.model, "the name of a model")
			case takes:
				return reader(q, v)
			case !ignores:
				return wrong(name, "%s is not a field that %s takes", listed.Quoted(name), k.name)
			case values != nil:
				return v.only(values)
			}
			return nil
		})
		known = errors.As(err, new(*problem))
	}
	if err == nil {
		err = d.End()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("unexpected end of the JSON")
	}
	if err != nil && !known {
		err = wrong("", "the body: %v", listed.Short(err))
	}
	for _, name := range k.needs {
		if err == nil && !slices.Contains(q.given, name) {
			err = wrong(name, "%q is missing", name)
		}
	}
	if err == nil && slices.Contains(q.given, "max_tokens") && slices.Contains(q.given, "max_completion_tokens") {
		err = wrong("max_tokens", "max_tokens and max_completion_tokens are both given, expected one of them")
	}
	if err == nil && slices.Contains(q.given, "stream_options") && !q.stream {
		err = wrong("stream_options", "stream_options without stream, expected both")
	}
	return q, err
}

func (v value) wrong(expected string) error {
	return wrong(v.name, "%s is %s, expected %s", listed.Quoted(v.name), listed.Quoted(v.raw), expected)
}

func read[T any](v value, to *T, expected string) error {
	if v.numbers || v.raw == "null" || json.Unmarshal([]byte(v.raw), to) != nil {
		return v.wrong(expected)
	}
	return nil
}

func (v value) number(to **float64, least, most float64) error {
	expected := fmt.Sprintf("a number from %v to %v", least, most)
	err := read(v, to, expected)
	if err == nil && !(**to >= least && **to <= most) {
		err = v.wrong(expected)
	}
	return err
}

func (v value) whole(to **int, least int) error {
	expected := fmt.Sprintf("a whole number from %d", least)
	err := read(v, to, expected)
	if err == nil && **to < least {
		err = v.wrong(expected)
	}
	return err
}

func (v value) only(values []string) error {
	var text bytes.Buffer
	if v.numbers || json.Compact(&text, []byte(v.raw)) != nil || !slices.Contains(values, text.String()) {
		return v.wrong(strings.Join(append(values[:len(values):len(values)], "null"), " or ") + ": other values are not implemented")
	}
	return nil
}

func list[T any](raw string) (all []T, ok bool) {
	var read []*T
	if json.Unmarshal([]byte(raw), &read) != nil {
		return nil, false
	}
	for _, v := range read {
		if v == nil {
			return nil, false
		}
		all = append(all, *v)
	}
	return all, true
}

func (q *request) streamOptions(v value) error {
	d, err := document.New(v.raw)
	if err == nil {
		err = d.Object(v.name, func(name string) error {
			if name != "include_usage" && name != "include_obfuscation" {
				return fmt.Errorf("%s is not a field of stream_options", listed.Quoted(name))
			}
			on, err := document.Read[bool](d, name, "true or false")
			if q.usage = q.usage || name == "include_usage" && on; err == nil && on && name == "include_obfuscation" {
				err = errors.New("include_obfuscation is not implemented")
			}
			return err
		})
	}
	if err != nil {
		return wrong(v.name, "%v", listed.Short(err))
	}
	return nil
}

const mostStops = 4

func (q *request) stop(v value) error {
	var one string
	if read(v, &one, "") == nil {
		q.stops = []string{one}
	} else if all, ok := list[string](v.raw); ok && !v.numbers {
		q.stops = all
	} else {
		return v.wrong("a text, or a list of texts")
	}
	if len(q.stops) > mostStops || slices.Contains(q.stops, "") {
		return v.wrong(fmt.Sprintf("up to %d texts that are not empty", mostStops))
	}
	return nil
}

func (q *request) input(v value) error {
	var one string
	if !v.numbers && read(v, &one, "") == nil {
		q.inputs = []input{{text: one}}
		return nil
	}
	if all, ok := list[string](v.raw); ok && len(all) > 0 {
		for _, s := range all {
			q.inputs = append(q.inputs, input{text: s})
		}
		return nil
	}
	if ids, ok := list[int32](v.raw); ok && len(ids) > 0 {
		q.inputs = []input{{ids: ids}}
		return nil
	}
	several, _ := list[json.RawMessage](v.raw)
	for _, raw := range several {
		ids, ok := list[int32](string(raw))
		if !ok || len(ids) == 0 {
			several = nil
			break
		}
		q.inputs = append(q.inputs, input{ids: ids})
	}
	if len(several) == 0 {
		return v.wrong("a text, a list of tokens, or a list of texts or of lists of tokens")
	}
	return nil
}

func (q *request) encoding(v value) error {
	if err := v.only([]string{`"float"`, `"base64"`}); err != nil {
		return err
	}
	q.base64 = v.raw == `"base64"`
	return nil
}

// conversation's fields other than role and content may be null.
func (q *request) conversation(v value) error {
	d, err := document.New(v.raw)
	if err == nil && v.numbers {
		err = errors.New("messages is a list of numbers, expected one of objects")
	}
	if err == nil {
		err = d.List(v.name, func() error {
			m, seen := chat.Message{}, 0
			err := d.Object("a message", func(name string) error {
				switch name {
				case "role":
					seen++
					m.Role, err = document.Read[string](d, name, "a text")
					return err
				case "content":
					seen++
					raw, numbers, err := d.Text()
					if err == nil {
						m.Content, err = contentOf(value{name, raw, numbers})
					}
					return err
				}
				raw, _, err := d.Text()
				if err == nil && raw != "null" {
					err = fmt.Errorf("%s of a message is not implemented, expected role and content", listed.Quoted(name))
				}
				return err
			})
			if err == nil && seen < 2 {
				err = errors.New("a message has no role or no content")
			}
			q.messages = append(q.messages, m)
			return err
		})
	}
	if err == nil && len(q.messages) == 0 {
		err = errors.New("messages is empty")
	}
	if err != nil {
		return wrong(v.name, "%v", listed.Short(err))
	}
	return nil
}

const mostParts = 10_000 // of a message

func contentOf(v value) (content string, err error) {
	if read(v, &content, "") == nil {
		return content, nil
	}
	d, err := document.New(v.raw)
	if err != nil || v.numbers || !strings.HasPrefix(v.raw, "[") {
		return "", v.wrong("a text, or a list of parts of the type text")
	}
	var whole strings.Builder
	parts := 0
	err = d.List("content", func() error {
		kind, part := "", ""
		if parts++; parts > mostParts {
			return fmt.Errorf("content has more than %d parts", mostParts)
		}
		err := d.Object("a part", func(name string) (err error) {
			switch name {
			case "type":
				kind, err = document.Read[string](d, name, "a text")
			case "text":
				part, err = document.Read[string](d, name, "a text")
			default:
				_, _, err = d.Text()
			}
			return err
		})
		if err == nil && kind != "text" {
			err = fmt.Errorf("the type of a part is %s, expected text: others are not implemented", listed.Quoted(kind))
		}
		whole.WriteString(part)
		return err
	})
	return whole.String(), err
}

func (in input) tokens(t *text.Tokenizer) ([]int32, error) {
	if in.ids != nil {
		return in.ids, nil
	}
	return t.Encode(in.text)
}
