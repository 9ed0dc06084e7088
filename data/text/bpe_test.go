//lazo:norace
package text

import (
	"encoding/json"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/golden"
)

func read(t testing.TB, name string) string {
	t.Helper()
	out, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return string(out)
}

func each(texts ...string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, s := range texts {
			if !yield(s, nil) {
				return
			}
		}
	}
}

var special = []string{"<|endoftext|>", "<|end|>"}

func modelOf(t *Tokenizer) *bpe { return t.model.(*bpe) }

func requireEqual(t testing.TB, a, b *Tokenizer) {
	t.Helper()
	require.Equal(t, modelOf(a), modelOf(b))
	require.Equal(t, a.added, b.added)
	require.Equal(t, a.size, b.size)
}

func trained(t testing.TB) *Tokenizer {
	t.Helper()
	b, err := BPETraining{Size: 500, Special: special}.Train(each(slices.Collect(strings.Lines(read(t, "corpus.txt")))...))
	require.NoError(t, err)
	return b
}

// The same texts give the vocabulary and the merges that the peer learns, and what is written is read to the same.
func TestBPE_trainsAsThePeer(t *testing.T) {
	b := trained(t)
	out, err := json.Marshal(b)
	require.NoError(t, err)
	golden.Equal(t, "testdata/written.json", string(out))

	var peer, again Tokenizer
	require.NoError(t, json.Unmarshal([]byte(read(t, "tokenizer.json")), &peer))
	require.NoError(t, json.Unmarshal(out, &again))
	require.Equal(t, modelOf(&peer).names, modelOf(b).names)
	require.Equal(t, modelOf(&peer).ranks, modelOf(b).ranks)
	for _, other := range []*Tokenizer{&peer, &again} {
		requireEqual(t, b, other)
	}
	require.Equal(t, 500, b.Size())
}

// Any bytes come back, valid UTF-8 or not, also with special tokens in them and under EncodeOrdinary; whatever the
// words around, the tokens are those of a search that tries each merge in turn.
func TestBPE_anyBytes(t *testing.T) {
	b := trained(t)
	random := rand.New(rand.NewPCG(1, 2))
	parts := append([]string{"the loop", " takes", "\xff\xfe", "\xc3", "é", "🙂", "\r\n", "   ", "'ll", "12", "循环", "<|", "|>"}, special...)
	for range 500 {
		var s strings.Builder
		for range random.IntN(12) {
			if random.IntN(3) == 0 {
				s.WriteByte(byte(random.IntN(256)))
			} else {
				s.WriteString(parts[random.IntN(len(parts))])
			}
		}
		ids, err := b.Encode(s.String())
		require.NoError(t, err)
		back, err := b.Decode(ids)
		require.NoError(t, err)
		require.Equal(t, s.String(), back)

		ordinary, err := b.EncodeOrdinary(s.String())
		require.NoError(t, err)
		require.Equal(t, oneByOne(b, s.String()), ordinary, "%q", s.String())
		for _, id := range ordinary {
			require.GreaterOrEqual(t, int(id), len(special), "%q", s.String())
		}
	}
}

// oneByOne goes through all merges, in their order, for each piece.
func oneByOne(b *Tokenizer, text string) (ids []int32) {
	merges := make([]merge, len(modelOf(b).ranks))
	for of, r := range modelOf(b).ranks {
		merges[r.rank] = merge{of, r.into}
	}
	for len(text) > 0 {
		n := piece(text)
		var piece []int32
		for i := range n {
			piece = append(piece, modelOf(b).starts[text[i]])
		}
		for _, m := range merges {
			for i := 0; i+1 < len(piece); i++ {
				if piece[i] == m.of[0] && piece[i+1] == m.of[1] {
					piece = slices.Replace(piece, i, i+2, m.into)
				}
			}
		}
		ids, text = append(ids, piece...), text[n:]
	}
	return ids
}
