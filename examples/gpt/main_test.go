//lazo:norace
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
)

// A small model learns the rule of a text that token frequencies do not show. Generated text continues the prompt.
func TestLearns(t *testing.T) {
	folder, rule := plugintest.Walk(t)
	file := filepath.Join(t.TempDir(), "tokenizer.json")
	s := settings{folder: folder, tokenizer: file, model: network{vocabulary: 320, width: 64, heads: 2, blocks: 2, window: 32}, steps: 150, batch: 16, evaluation: 4,
		rate: 1e-2, prompt: "A step", tokens: 20, sampling: text.Sampling{Temperature: 0.8, TopK: 40, TopP: 0.95}}
	var out, progress bytes.Buffer
	require.NoError(t, run(t.Context(), plugintest.CPU(t), s, &out, &progress))
	var bits, alone float64
	_, err := fmt.Sscanf(out.String(), "bits per byte: %f (by frequencies of tokens alone: %f)\n", &bits, &alone)
	require.NoError(t, err, out.String())
	t.Logf("%d steps: %.3f bits a byte, by frequencies of tokens alone %.3f, by the rule %.3f", s.steps, bits, alone, rule)
	require.Less(t, bits, 1.5*rule)
	require.Greater(t, alone, 4*rule, "the rule must be what is hard to know")
	require.Greater(t, bits, 0.9*rule, "nobody knows more of the next token than the rule: the model sees what it is to predict")
	require.Contains(t, out.String(), "\nA step")

	var tokens text.Tokenizer
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &tokens))
	require.Equal(t, 320, tokens.Size())
}

// Generation with the cache equals generation from the whole text, token for token. It uses two programs: one for the
// prompt, and one for all later tokens. Another prompt resets the caches.
func TestCache(t *testing.T) {
	ctx, m := t.Context(), network{vocabulary: 50, width: 32, heads: 2, blocks: 2, window: 24}
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)), managed.WithSeed(3))
	require.NoError(t, err)
	defer state.Close()
	w := newWriter(m, state)
	defer w.close()
	whole := managed.TestStep(func(b *managed.Builder) { // the text, padded: causal attention does not see the padding
		b.Output("logits", m.logits(b.Scope(), b.Field("x")))
	})
	defer whole.Close()
	padded := make([]int32, m.window)
	_, err = logitsOf(ctx, whole, state, padded) // makes the parameters
	require.NoError(t, err)
	for _, name := range state.Names() { // so that a token is not followed by itself alone
		if strings.HasSuffix(name, "kernel") {
			value, err := state.Value(name)
			require.NoError(t, err)
			large := tensors.MustCopyFlatData[float32](value)
			for i := range large {
				large[i] *= 4
			}
			require.NoError(t, state.SetValue(name, tensors.FromFlatDataAndDimensions(large, value.Shape().Dimensions...)))
		}
	}
	for _, prompt := range [][]int32{{7, 1, 30}, {11, 2, 49}} {
		written, err := w.write(ctx, prompt, m.window-len(prompt), -1, text.Sampling{}, 0)
		require.NoError(t, err)
		ids := append([]int32(nil), prompt...)
		for range written {
			clear(padded)
			copy(padded, ids)
			logits, err := logitsOf(ctx, whole, state, padded)
			require.NoError(t, err)
			id, err := text.Sampling{}.Draw(nil, logits[(len(ids)-1)*m.vocabulary:len(ids)*m.vocabulary])
			require.NoError(t, err)
			ids = append(ids, id)
		}
		require.Equal(t, ids[len(prompt):], written)
		require.Greater(t, len(distinct(written)), 3, "a model that always says the same would show nothing: %v", written)
	}
	require.Len(t, w.prompt.StableHLO(), 1)
	require.Len(t, w.token.StableHLO(), 1)

	_, err = w.write(ctx, []int32{1, 2, 3}, 22, -1, text.Sampling{}, 0)
	require.EqualError(t, err, "the prompt has 3 tokens, and 22 are to be written: expected a prompt, and at most the window's 24 tokens together")
}

func distinct(ids []int32) map[int32]bool {
	set := map[int32]bool{}
	for _, id := range ids {
		set[id] = true
	}
	return set
}

func TestReadsRepositoryAlone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "short.md"), []byte("short"), 0o600))
	_, err := read(dir, 400)
	require.ErrorContains(t, err, "have 5 bytes in 1 files, expected 100000 in 20 or more: run it from the root of lazo's repository, or name a folder with -text")
	_, err = read(filepath.Join(dir, "missing"), 400)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// The target of each place is the next token.
func TestFields(t *testing.T) {
	got := fields([]int32{1, 2, 3, 4, 5, 6}, []int{0, 2}, 3)
	require.Equal(t, []data.Field{data.X([]int32{1, 2, 3, 3, 4, 5}, 2, 3), data.Y([]int32{2, 3, 4, 4, 5, 6}, 2, 3)}, got)
}
