package openai_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/pretrained/openai"
)

// events reads a stream to its end.
func events(t *testing.T, h http.Handler, path, body string) (all []any) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
	require.Equal(t, 200, w.Code, w.Body.String())
	require.Equal(t, "text/event-stream", w.Header().Get("Content-Type"))
	parts := strings.Split(w.Body.String(), "\n\n")
	require.Equal(t, []string{"data: [DONE]", ""}, parts[len(parts)-2:])
	for _, p := range parts[:len(parts)-2] {
		content, ok := strings.CutPrefix(p, "data: ")
		require.True(t, ok, p)
		var v any
		require.NoError(t, json.Unmarshal([]byte(content), &v))
		all = append(all, v)
	}
	return all
}

// Completions have the texts of the Generator, whole and as streams, of prompts, tokens and conversations.
func TestCompletions(t *testing.T) {
	tokenizer, g := tokenizerOf(t), generatorOf(t, 2, 24)
	h, err := openai.NewHandler(map[string]openai.Model{"small": {Tokenizer: tokenizer, Generator: g, Generation: pretrained.Generation{Most: 8}}}, openai.Options{})
	require.NoError(t, err)
	want := func(prompt []int32, of pretrained.Generation) (text, end string, n float64) {
		of.Tokenizer = tokenizer
		for p, err := range g.Generate(t.Context(), [][]int32{prompt}, of) {
			require.NoError(t, err)
			text, end, n = text+p.Text, p.End, n+1
		}
		return text, end, n
	}
	plain, _, _ := want([]int32{20, 30, 40}, pretrained.Generation{Most: 8})
	words := strings.Fields(plain)
	for _, row := range []struct {
		body string
		of   pretrained.Generation
	}{
		{`"prompt": "w20 w30 w40"`, pretrained.Generation{Most: 8}},
		{`"prompt": [20, 30, 40], "max_tokens": 5, "user": "me", "n": 1, "frequency_penalty": 0.0, "stop": null`, pretrained.Generation{Most: 5}},
		{`"prompt": ["w20 w30 w40"], "temperature": 1.5, "top_p": 0.9, "seed": 7`, pretrained.Generation{Most: 8, Seed: 7, Sampling: text.Sampling{Temperature: 1.5, TopP: 0.9}}},
		{`"prompt": [[20, 30, 40]], "temperature": 2, "top_k": 9, "min_p": 0.1, "repetition_penalty": 1.3, "seed": -1`,
			pretrained.Generation{Most: 8, Seed: 1<<64 - 1, Sampling: text.Sampling{Temperature: 2, TopK: 9, MinP: 0.1, Repetition: 1.3}}},
		{`"prompt": "w20 w30 w40", "stop": ["` + words[2] + `", "never"]`, pretrained.Generation{Most: 8, StopTexts: []string{words[2]}}},
		{`"prompt": "w20 w30 w40", "stop": "` + words[1] + ` ` + words[2] + `"`, pretrained.Generation{Most: 8, StopTexts: []string{words[1] + " " + words[2]}}},
	} {
		text, end, n := want([]int32{20, 30, 40}, row.of)
		body := `{"model": "small", ` + row.body
		status, answer := post(t, h, "/v1/completions", body+"}")
		require.Equal(t, 200, status, answer)
		require.Equal(t, text, at(t, answer, "choices", 0, "text"), row.body)
		require.Equal(t, end, at(t, answer, "choices", 0, "finish_reason"))
		require.Equal(t, map[string]any{"prompt_tokens": 3.0, "completion_tokens": n, "total_tokens": 3 + n}, answer["usage"])
		require.Equal(t, "text_completion", answer["object"])
		parts, joined := events(t, h, "/v1/completions", body+`, "stream": true, "stream_options": {"include_usage": true}}`), ""
		for i, p := range parts[:len(parts)-1] {
			joined += at(t, p, "choices", 0, "text").(string)
			finish := at(t, p, "choices", 0, "finish_reason")
			require.Equal(t, i == len(parts)-2, finish == end, "%v", p)
		}
		require.Equal(t, text, joined)
		require.Empty(t, at(t, parts[len(parts)-1], "choices"))
		require.Equal(t, answer["usage"], at(t, parts[len(parts)-1], "usage"))
	}
	// More prompts than the Generator has rows, each as alone with the next seed.
	body := `{"model": "small", "prompt": ["w20 w30 w40", "w5", "w5", "w5"], "temperature": 2, "seed": 3`
	_, all := post(t, h, "/v1/completions", body+"}")
	streamed := make([]string, 4)
	for _, p := range events(t, h, "/v1/completions", body+`, "stream": true}`) {
		streamed[int(at(t, p, "choices", 0, "index").(float64))] += at(t, p, "choices", 0, "text").(string)
	}
	for i, prompt := range [][]int32{{20, 30, 40}, {5}, {5}, {5}} {
		text, _, _ := want(prompt, pretrained.Generation{Most: 8, Seed: 3 + uint64(i), Sampling: text.Sampling{Temperature: 2}})
		require.Equal(t, text, at(t, all, "choices", i, "text"))
		require.Equal(t, float64(i), at(t, all, "choices", i, "index"))
		require.Equal(t, text, streamed[i])
	}
	status, refused := post(t, h, "/v1/completions", `{"model": "small", "prompt": [`+strings.Repeat("[1],", 2048)+`[1]]}`)
	require.Equal(t, 400, status)
	require.Equal(t, "there are 2049 prompts, expected at most 2048", at(t, refused, "error", "message"))

	const conversation = `{"model": "small", "messages": [{"role": "system", "content": "w11"}, {"role": "user", "name": null, "content": [{"type": "text", "text": "w12 "}, {"type": "text", "text": "w13"}]}], "max_completion_tokens": 6`
	answer, end, n := want([]int32{7, 11, 8, 7, 12, 13, 8, 9}, pretrained.Generation{Most: 6})
	_, whole := post(t, h, "/v1/chat/completions", conversation+"}")
	require.Equal(t, map[string]any{"role": "assistant", "content": answer}, at(t, whole, "choices", 0, "message"))
	require.Equal(t, end, at(t, whole, "choices", 0, "finish_reason"))
	require.Equal(t, map[string]any{"prompt_tokens": 8.0, "completion_tokens": n, "total_tokens": 8 + n}, whole["usage"])
	require.Equal(t, "chat.completion", whole["object"])
	parts, joined := events(t, h, "/v1/chat/completions", conversation+`, "stream": true}`), ""
	require.Equal(t, map[string]any{"role": "assistant", "content": ""}, at(t, parts[0], "choices", 0, "delta"))
	for _, p := range parts[1:] {
		require.Equal(t, "chat.completion.chunk", at(t, p, "object"))
		if s, ok := at(t, p, "choices", 0, "delta", "content").(string); ok {
			joined += s
		}
	}
	require.Equal(t, answer, joined)
	require.Equal(t, end, at(t, parts[len(parts)-1], "choices", 0, "finish_reason"))
}
