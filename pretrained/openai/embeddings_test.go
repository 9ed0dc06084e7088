package openai_test

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/pretrained/openai"
	"github.com/lazo-ml/lazo/strategies"
)

// Vectors are those of the model, of texts and tokens, as numbers and in base64, whatever is padded.
func TestEmbeddings(t *testing.T) {
	for _, kind := range []string{"bert", "distilbert"} {
		base, err := pretrained.Open(t.Context(), "../testdata/"+kind)
		require.NoError(t, err)
		m, err := flaxlike.New(t.Context(), base.Embedder(), flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))))
		require.NoError(t, err)
		h, err := openai.NewHandler(map[string]openai.Model{"m": {Tokenizer: tokenizerOf(t), Embedder: m}}, openai.Options{})
		require.NoError(t, err)
		status, answer := post(t, h, "/v1/embeddings", `{"model": "m", "input": ["w5 w6 w7", "w8"], "dimensions": 16}`)
		require.Equal(t, 200, status, answer)
		require.Equal(t, map[string]any{"prompt_tokens": 4.0, "total_tokens": 4.0}, answer["usage"])
		ones := []int32{1, 1, 1}
		exact, err := m.PredictBatch(t.Context(), data.Batch{Size: 1, Fields: []data.Field{data.Named("input_ids", []int32{5, 6, 7}, 1, 3), data.Named("attention_mask", ones, 1, 3),
			data.Named("token_type_ids", make([]int32, 3), 1, 3)}})
		require.NoError(t, err)
		want, err := exact.Output("sentence_embedding")
		require.NoError(t, err)
		got := at(t, answer, "data", 0, "embedding").([]any)
		require.Len(t, got, 16)
		for i, v := range want.Flat.([]float32) {
			require.InDelta(t, v, got[i], 1e-5)
		}
		_, again := post(t, h, "/v1/embeddings", `{"model": "m", "input": [[5, 6, 7], [8]], "encoding_format": "base64"}`)
		for row := range 2 {
			bytes, err := base64.StdEncoding.DecodeString(at(t, again, "data", row, "embedding").(string))
			require.NoError(t, err)
			vector := make([]float32, 16)
			_, err = binary.Decode(bytes, binary.LittleEndian, vector)
			require.NoError(t, err)
			for i, v := range at(t, answer, "data", row, "embedding").([]any) {
				require.InDelta(t, v, vector[i], 1e-7)
			}
		}
		status, answer = post(t, h, "/v1/embeddings", `{"model": "m", "input": [5, 6, 7], "dimensions": 8}`)
		require.Equal(t, 400, status)
		require.Equal(t, "dimensions is 8, expected 16, the model's", at(t, answer, "error", "message"))
		status, answer = post(t, h, "/v1/embeddings", `{"model": "m", "input": ["w1"`+strings.Repeat(`, "w1"`, 2048)+`]}`)
		require.Equal(t, 400, status)
		require.Equal(t, "there are 2049 texts, expected at most 2048", at(t, answer, "error", "message"))
		require.NoError(t, m.Close())
	}
}
