package openai

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A message of many parts takes memory by its size, and their number is bounded.
func TestContentOf_parts(t *testing.T) {
	body := func(n int) string {
		part := `{"type": "text", "text": "` + strings.Repeat("a", 50) + `"}`
		return `{"model": "m", "messages": [{"role": "user", "content": [` + part + strings.Repeat(", "+part, n-1) + `]}]}`
	}
	whole := body(10_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	q, err := chats.parse(whole)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("a", 500_000), q.messages[0].Content)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100*len(whole)))
	_, err = chats.parse(body(10_001))
	require.ErrorContains(t, err, "content has more than 10000 parts")
}

// Whatever the body, a request is read, or refused with a text for the client.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		`{"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}], "stop": ["a"], "stream": true, "stream_options": {"include_usage": true}}`,
		`{"model": "m", "prompt": [[1, 2], [3]], "temperature": 1e0, "seed": -1, "logit_bias": {}}`, `{"model": "m", "input": ["a", null], "encoding_format": "base64"}`,
		`{"model": null, "input": [` + "1111111111, 1111111111, 1111111111, 1111111111, 1111111111, 1111111111" + `]}`, `{"messages": [1`, `[`, `{"a": 1}x`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, of := range []kind{chats, continuations, embeddings} {
			q, err := of.parse(body)
			if err != nil {
				require.True(t, errors.As(err, new(*problem)), "%v", err)
				require.LessOrEqual(t, len(err.Error()), 1000)
				continue
			}
			for _, name := range of.needs {
				require.Contains(t, q.given, name)
			}
			require.Equal(t, of.name == "/v1/chat/completions", len(q.messages) > 0)
			require.Equal(t, of.name != "/v1/chat/completions", len(q.inputs) > 0)
		}
	})
}
