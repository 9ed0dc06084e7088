package openai_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/pretrained/openai"
	"github.com/lazo-ml/lazo/serve"
	"github.com/lazo-ml/lazo/strategies"
)

const template = `{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}w7 {{ m.content }} w8 {% endfor %}{% if add_generation_prompt %}w9{% endif %}`

// tokenizerOf has words w0 to w59, more, and a chat template.
func tokenizerOf(t *testing.T, more ...string) *text.Tokenizer {
	t.Helper()
	dir := t.TempDir()
	words, err := os.ReadFile("../testdata/tokenizer.json")
	require.NoError(t, err)
	for i, word := range more {
		words = bytes.Replace(words, []byte(`"vocab": {`), fmt.Appendf(nil, `"vocab": {%q: %d, `, word, 60+i), 1)
	}
	settings, err := json.Marshal(map[string]any{"chat_template": template, "model_max_length": 20})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), words, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), settings, 0o600))
	tokenizer, err := text.Open(dir)
	require.NoError(t, err)
	return tokenizer
}

func generatorOf(t *testing.T, rows, places int) *pretrained.Generator {
	t.Helper()
	base, err := pretrained.Open(t.Context(), "../testdata/qwen3")
	require.NoError(t, err)
	network := base.CausalLM()
	require.Empty(t, network.Drawn())
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)), network.Weights())
	require.NoError(t, err)
	g, err := network.Generator(state, rows, places)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, g.Close())
		require.NoError(t, state.Close())
	})
	return g
}

// post returns an answer in JSON.
func post(t *testing.T, h http.Handler, path, body string) (status int, answer map[string]any) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer), w.Body.String())
	return w.Code, answer
}

// at takes a value of nested objects and lists.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			of, ok := v.(map[string]any)
			require.True(t, ok, "%v of %v", p, v)
			v = of[p]
		case int:
			of, ok := v.([]any)
			require.True(t, ok && p < len(of), "%v of %v", p, v)
			v = of[p]
		}
	}
	return v
}

// Requests that would get another answer than they ask for are refused.
func TestHandler_refuses(t *testing.T) {
	tokenizer := tokenizerOf(t)
	bare := &text.Tokenizer{}
	words, err := os.ReadFile("../testdata/tokenizer.json")
	require.NoError(t, err)
	require.NoError(t, bare.UnmarshalJSON(words))
	fails := serve.Func(func(context.Context, data.Batch) (map[string]data.Array, error) { return nil, errors.New("a secret") })
	var log bytes.Buffer
	h, err := openai.NewHandler(map[string]openai.Model{"small": {Tokenizer: tokenizer, Generator: generatorOf(t, 2, 24), Embedder: fails}, "bare": {Tokenizer: bare, Generator: generatorOf(t, 1, 8)},
		"wide": {Tokenizer: tokenizerOf(t, "x0", "x1"), Generator: generatorOf(t, 1, 24)}, "vectors": {Tokenizer: tokenizer, Embedder: fails}}, openai.Options{MaxBody: 2000, Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	const user = `"messages": [{"role": "user", "content": "w1"}]`
	for _, row := range []struct {
		path, body, message string
		status              int
		param, code         any
	}{
		{"chat/completions", `{"model": "none", ` + user + `}`, `there is no model "none": expected one of ["bare" "small" "vectors" "wide"]`, 404, "model", "model_not_found"},
		{"chat/completions", `{"model": "small", ` + user + `, "n": 2}`, `"n" is "2", expected 1 or null: other values are not implemented`, 400, "n", nil},
		{"chat/completions", `{"model": "small", ` + user + `, "logprobs": true}`, "expected false or null", 400, "logprobs", nil},
		{"chat/completions", `{"model": "small", ` + user + `, "frequency_penalty": 0.5}`, "not implemented", 400, "frequency_penalty", nil},
		{"chat/completions", `{"model": "small", ` + user + `, "tools": [{}]}`, "not implemented", 400, "tools", nil},
		{"chat/completions", `{"model": "small", ` + user + `, "response_format": {"type": "json_object"}}`, "not implemented", 400, "response_format", nil},
		{"chat/completions", `{"model": "small", ` + user + `, "prompt": "w1"}`, `"prompt" is not a field that /v1/chat/completions takes`, 400, "prompt", nil},
		{"chat/completions", `{"model": "small", ` + user + `, "temperature": 2.5}`, "expected a number from 0 to 2", 400, "temperature", nil},
		{"chat/completions", `{"model": "small", ` + user + `, "temperature": "1"}`, "expected a number from 0 to 2", 400, "temperature", nil},
		{"chat/completions", `{"model": "small", ` + user + `, "top_p": 0}`, "expected a number from", 400, "top_p", nil},
		{"chat/completions", `{"model": "small", ` + user + `, "max_tokens": 0}`, "expected a whole number from 1", 400, "max_tokens", nil},
		{"chat/completions", `{"model": "small", ` + user + `, "max_tokens": 1, "max_completion_tokens": 1}`, "expected one of them", 400, "max_tokens", nil},
		{"chat/completions", `{"model": "small", ` + user + `, "stop": ["a", "b", "c", "d", "e"]}`, "up to 4 texts", 400, "stop", nil},
		{"chat/completions", `{"model": "small", ` + user + `, "stop": [""]}`, "not empty", 400, "stop", nil},
		{"chat/completions", `{"model": "small", ` + user + `, "stream_options": {"include_usage": true}}`, "without stream", 400, "stream_options", nil},
		{"chat/completions", `{"model": "small", ` + user + `, "stream": true, "stream_options": {"usage": true}}`, `"usage" is not a field of stream_options`, 400, "stream_options", nil},
		{"chat/completions", `{"model": "small"}`, `"messages" is missing`, 400, "messages", nil},
		{"chat/completions", `{"model": "small", "messages": []}`, "messages is empty", 400, "messages", nil},
		{"chat/completions", `{"model": "small", "messages": [{"role": "user"}]}`, "no role or no content", 400, "messages", nil},
		{"chat/completions", `{"model": "small", "messages": [{"role": "tool", "content": "w1"}]}`, "no tools", 400, "messages", nil},
		{"chat/completions", `{"model": "small", "messages": [{"role": "user", "content": "w1", "name": "me"}]}`, `"name" of a message is not implemented`, 400, "messages", nil},
		{"chat/completions", `{"model": "small", "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}`, `the type of a part is "image_url"`, 400, "messages", nil},
		{"chat/completions", `{"model": "small", "messages": [{"role": "user", "content": "` + strings.Repeat("w1 ", 30) + `"}]}`, "messages has 33 tokens, expected at most 24", 400, "messages", "context_length_exceeded"},
		{"chat/completions", `{"model": "bare", ` + user + `}`, `the model "bare" has no conversations: chat: the tokenizer has no chat template`, 400, "model", nil},
		{"chat/completions", `{"model": "vectors", ` + user + `}`, "makes embeddings only", 400, "model", nil},
		{"chat/completions", `{"model": "small", "model": "small"}`, `the body has "model" twice`, 400, nil, nil},
		{"chat/completions", `{"model": "small"`, "unexpected end of the JSON", 400, nil, nil},
		{"chat/completions", `[]`, "the body is a list, expected an object", 400, nil, nil},
		{"chat/completions", `{"model": "small"} x`, "there is text after", 400, nil, nil},
		{"chat/completions", `{"model": "small", "messages": [{"role": "user", "content": null}]}`, "expected a text, or a list of parts of the type text", 400, "messages", nil},
		{"chat/completions", `{"model": "small", "messages": [{"role": "user", "content": 3}]}`, "expected a text, or a list of parts of the type text", 400, "messages", nil},
		{"completions", `{"model": "wide", "prompt": [1, 61]}`, "token 1 of prompt 0 is 61, expected 0 to 59", 400, "prompt", nil},
		{"completions", `{"model": "wide", "prompt": "w1 x1", "stream": true}`, "token 1 of prompt 0 is 61, expected 0 to 59", 400, "prompt", nil},
		{"chat/completions", `{"model": "wide", "messages": [{"role": "user", "content": "x1"}]}`, "of prompt 0 is 61, expected 0 to 59", 400, "messages", nil},
		{"completions", `{"model": "small", "prompt": "", "user": "` + strings.Repeat("x", 2000) + `"}`, "the body has more than 2000 bytes", 413, nil, nil},
		{"completions", `{"model": "small", "prompt": ""}`, "prompt has no tokens", 400, "prompt", nil},
		{"completions", `{"model": "small", "prompt": ["w1", null]}`, "a list of tokens, or a list of texts", 400, "prompt", nil},
		{"completions", `{"model": "small", "prompt": [1, 60]}`, "expected tokens from 0 to 59", 400, "prompt", nil},
		{"completions", `{"model": "small", "prompt": "w1", "logprobs": 0}`, "not implemented", 400, "logprobs", nil},
		{"completions", `{"model": "small", "prompt": "w1", "echo": true}`, "not implemented", 400, "echo", nil},
		{"embeddings", `{"model": "bare", "input": "w1"}`, "makes completions only", 400, "model", nil},
		{"embeddings", `{"model": "small", "input": "w1", "encoding_format": "int8"}`, "not implemented", 400, "encoding_format", nil},
		{"embeddings", `{"model": "small", "input": "` + strings.Repeat("w1 ", 21) + `"}`, "input has 21 tokens, expected at most 20", 400, "input", "context_length_exceeded"},
		{"embeddings", `{"model": "small", "input": "w1"}`, "an internal error, in the server's log under the id", 500, nil, nil},
		{"images", `{}`, `there is no "/v1/images": expected /v1/chat/completions`, 404, nil, "unknown_url"},
		{"models", `{}`, `the method is "POST", expected GET`, 405, nil, nil},
	} {
		status, answer := post(t, h, "/v1/"+row.path, row.body)
		require.Equal(t, row.status, status, "%s: %v", row.body, answer)
		require.Contains(t, at(t, answer, "error", "message"), row.message, row.body)
		require.Equal(t, row.param, at(t, answer, "error", "param"), row.body)
		require.Equal(t, row.code, at(t, answer, "error", "code"), row.body)
		kind := "invalid_request_error"
		if status == 500 {
			kind = "server_error"
		}
		require.Equal(t, kind, at(t, answer, "error", "type"))
		require.NotContains(t, at(t, answer, "error", "message"), "secret")
	}
	require.Contains(t, log.String(), "a secret")
}

// The time of a request includes that of reading it.
func TestHandler_readsLate(t *testing.T) {
	h, err := openai.NewHandler(nil, openai.Options{Timeout: 1})
	require.NoError(t, err)
	status, answer := post(t, h, "/v1/completions", `{"model": "none", "prompt": "w1"}`)
	require.Equal(t, 504, status)
	require.Equal(t, "the request took longer than 1ns", at(t, answer, "error", "message"))
}

// Each request has the key.
func TestHandler_key(t *testing.T) {
	echo := serve.Func(func(context.Context, data.Batch) (map[string]data.Array, error) { return nil, nil })
	h, err := openai.NewHandler(map[string]openai.Model{"b": {Tokenizer: tokenizerOf(t), Embedder: echo}, "a/x": {Tokenizer: tokenizerOf(t), Embedder: echo}}, openai.Options{Key: "sesame"})
	require.NoError(t, err)
	for header, want := range map[string]int{"Bearer sesame": 200, "": 401, "sesame": 401, "Bearer": 401, "Bearer sesam": 401, "Bearer sesamee": 401, "Basic sesame": 401} {
		for _, path := range []string{"/v1/models", "/v1/models/a/x"} {
			w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			if header != "" {
				r.Header.Set("Authorization", header)
			}
			h.ServeHTTP(w, r)
			require.Equal(t, want, w.Code, header)
			if want == 401 {
				require.Contains(t, w.Body.String(), `"code":"invalid_api_key"`)
			} else if path == "/v1/models" {
				require.JSONEq(t, `{"object": "list", "data": [{"id": "a/x", "object": "model", "created": 0, "owned_by": "lazo"}, {"id": "b", "object": "model", "created": 0, "owned_by": "lazo"}]}`, w.Body.String())
			} else {
				require.Contains(t, w.Body.String(), `"id":"a/x"`)
			}
		}
	}
}

// waiting is an Embedder that answers when the test lets it.
type waiting struct{ came, answer chan struct{} }

func (w waiting) Answer(ctx context.Context, _ data.Batch) (map[string]data.Array, error) {
	w.came <- struct{}{}
	select {
	case <-w.answer:
		return map[string]data.Array{"sentence_embedding": {Flat: []float32{1, 2}, Dims: []int{1, 2}}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// One request is at work, as many as Queue wait, and others are refused. One that ends makes room.
func TestHandler_queue(t *testing.T) {
	of := waiting{make(chan struct{}), make(chan struct{})}
	h, err := openai.NewHandler(map[string]openai.Model{"m": {Tokenizer: tokenizerOf(t), Embedder: of}}, openai.Options{Queue: 1})
	require.NoError(t, err)
	ask := func(ctx context.Context) (end chan int) {
		end = make(chan int, 1)
		go func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/embeddings", strings.NewReader(`{"model": "m", "input": "w1"}`)))
			end <- w.Code
		}()
		return end
	}
	ctx, leave := context.WithCancel(t.Context())
	first := ask(ctx)
	<-of.came
	second, third := ask(t.Context()), ask(t.Context()) // one of them waits
	select {
	case code := <-second:
		require.Equal(t, 503, code)
		second = third
	case code := <-third:
		require.Equal(t, 503, code)
	}
	leave() // the client at work
	select {
	case <-of.came:
	case code := <-second:
		t.Fatalf("a request in the queue has the status %d", code)
	}
	require.Equal(t, 200, <-first, "a recorder's standard: nothing was written")
	fourth := ask(t.Context())
	of.answer <- struct{}{}
	require.Equal(t, 200, <-second)
	<-of.came
	of.answer <- struct{}{}
	require.Equal(t, 200, <-fourth)

	h, err = openai.NewHandler(map[string]openai.Model{"m": {Tokenizer: tokenizerOf(t), Embedder: of}}, openai.Options{Timeout: 20 * time.Millisecond})
	require.NoError(t, err)
	late := ask(t.Context())
	<-of.came
	require.Equal(t, 504, <-late)
}

// leaving is a client that leaves after some events.
type leaving struct {
	*httptest.ResponseRecorder
	left  int
	leave func()
}

func (l *leaving) Write(p []byte) (int, error) {
	if l.left--; l.left == 0 {
		l.leave()
	}
	return l.ResponseRecorder.Write(p)
}

// A client that leaves ends the generation, and the next one has the model.
func TestHandler_clientLeaves(t *testing.T) {
	h, err := openai.NewHandler(map[string]openai.Model{"m": {Tokenizer: tokenizerOf(t), Generator: generatorOf(t, 1, 2000)}}, openai.Options{})
	require.NoError(t, err)
	ctx, leave := context.WithCancel(t.Context())
	w := &leaving{httptest.NewRecorder(), 5, leave}
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/completions", strings.NewReader(`{"model": "m", "prompt": "w1", "stream": true}`)))
	require.Equal(t, 5, strings.Count(w.Body.String(), "data: "))
	require.NotContains(t, w.Body.String(), "error")
	status, answer := post(t, h, "/v1/completions", `{"model": "m", "prompt": "w1", "max_tokens": 3}`)
	require.Equal(t, 200, status, answer)
	require.Equal(t, 3.0, at(t, answer, "usage", "completion_tokens"))
}

// deaf is a client that reads nothing until the test lets it.
type deaf struct {
	*httptest.ResponseRecorder
	came, read chan struct{}
	ends       []time.Time
}

func (d *deaf) SetWriteDeadline(t time.Time) error {
	if !t.IsZero() {
		d.ends = append(d.ends, t)
	}
	return nil
}

func (d *deaf) Write(p []byte) (int, error) {
	if d.came != nil {
		d.came <- struct{}{}
		<-d.read
	}
	return d.ResponseRecorder.Write(p)
}

// A client that does not read its answer does not hold the model, and all of a stream has the request's one timeout.
func TestHandler_clientReadsNothing(t *testing.T) {
	vector := serve.Func(func(context.Context, data.Batch) (map[string]data.Array, error) {
		return map[string]data.Array{"sentence_embedding": {Flat: []float32{1, 2}, Dims: []int{1, 2}}}, nil
	})
	h, err := openai.NewHandler(map[string]openai.Model{"m": {Tokenizer: tokenizerOf(t), Generator: generatorOf(t, 1, 24), Embedder: vector}}, openai.Options{Timeout: 10 * time.Second})
	require.NoError(t, err)
	for path, body := range map[string]string{"/v1/embeddings": `{"model": "m", "input": "w1"}`, "/v1/completions": `{"model": "m", "prompt": "w1", "max_tokens": 2}`} {
		w, done := &deaf{httptest.NewRecorder(), make(chan struct{}), make(chan struct{}), nil}, make(chan struct{})
		go func() {
			defer close(done)
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
		}()
		<-w.came
		status, answer := post(t, h, path, body)
		require.Equal(t, 200, status, answer)
		close(w.read)
		<-done
	}
	w := &deaf{ResponseRecorder: httptest.NewRecorder()}
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/completions", strings.NewReader(`{"model": "m", "prompt": "w1", "max_tokens": 9, "stream": true}`)))
	require.Greater(t, len(w.ends), 5)
	for _, end := range w.ends {
		require.Equal(t, w.ends[0], end)
	}
}

// A chat template is rendered in the request's turn.
func TestHandler_templateWaits(t *testing.T) {
	of := waiting{make(chan struct{}), make(chan struct{})}
	h, err := openai.NewHandler(map[string]openai.Model{"m": {Tokenizer: tokenizerOf(t), Generator: generatorOf(t, 1, 24), Embedder: of}}, openai.Options{})
	require.NoError(t, err)
	const refused = `{"model": "m", "messages": [{"role": "tool", "content": "w1"}]}` // by the template
	first := make(chan struct{})
	go func() {
		defer close(first)
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/embeddings", strings.NewReader(`{"model": "m", "input": "w1"}`)))
	}()
	<-of.came
	ctx, leave := context.WithCancel(t.Context())
	leave()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions", strings.NewReader(refused)))
	require.Empty(t, w.Body.String())
	of.answer <- struct{}{}
	<-first
	status, answer := post(t, h, "/v1/chat/completions", refused)
	require.Equal(t, 400, status, answer)
}

// Over a connection, events come while the text is generated.
func TestHandler_streams(t *testing.T) {
	h, err := openai.NewHandler(map[string]openai.Model{"m": {Tokenizer: tokenizerOf(t), Generator: generatorOf(t, 1, 24)}}, openai.Options{})
	require.NoError(t, err)
	s := httptest.NewServer(h)
	defer s.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/completions", strings.NewReader(`{"model": "m", "prompt": "w1", "stream": true}`))
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	n := 0
	for lines.Scan() {
		n++
	}
	require.NoError(t, lines.Err())
	require.GreaterOrEqual(t, n, 2*10)
}

func TestNewHandler_errors(t *testing.T) {
	tokenizer, g := tokenizerOf(t), generatorOf(t, 1, 8)
	words := &text.Tokenizer{}
	for message, m := range map[string]openai.Model{
		`openai: the model "m" has no Tokenizer, or neither a Generator nor an Embedder`: {Tokenizer: tokenizer},
		`the model "m" has no Tokenizer`:                                                 {Generator: g},
		`has a Generation with Beams`:                                                    {Tokenizer: tokenizer, Generator: g, Generation: pretrained.Generation{Beams: pretrained.Beams{Count: 2}}},
		`Longest of the model "m" is 0, expected 1 or more`:                              {Tokenizer: words, Embedder: waiting{}},
	} {
		_, err := openai.NewHandler(map[string]openai.Model{"m": m}, openai.Options{})
		require.ErrorContains(t, err, message)
	}
	_, err := openai.NewHandler(nil, openai.Options{Queue: -1})
	require.EqualError(t, err, "openai: Queue is -1, MaxBody 0 and Timeout 0s, expected 0 (not given) or more")
	_, err = openai.NewHandler(map[string]openai.Model{"m": {Tokenizer: tokenizer, Generator: g}}, openai.Options{Queue: math.MaxInt})
	require.ErrorContains(t, err, "expected at most 1048576")
}
