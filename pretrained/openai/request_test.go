package openai

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

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
