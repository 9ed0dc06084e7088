package text

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The words that begin a text are found from the shortest on, each once, with their ids, as a look at each length finds
// them.
func TestTrie_prefixes(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	some := func(most int) string {
		var s strings.Builder
		for range random.IntN(most) + 1 {
			s.WriteByte([]byte{'a', 'b', 0, 0xff}[random.IntN(4)])
		}
		return s.String()
	}
	words := map[string]int32{}
	for range 200 {
		words[some(7)] = int32(len(words))
	}
	tree, all := newTrie(words), 0
	type hit struct {
		length int
		id     int32
	}
	for range 1000 {
		s := some(12)
		var want, got []hit
		for n := 1; n <= len(s); n++ {
			if id, ok := words[s[:n]]; ok {
				want = append(want, hit{n, id})
			}
		}
		tree.prefixes(s, func(n int, id int32) { got = append(got, hit{n, id}) })
		require.Equal(t, want, got, "%q", s)
		all += len(got)
	}
	require.Greater(t, all, 1000)
	for _, none := range []*trie{tree, newTrie(nil)} {
		none.prefixes("", func(int, int32) { t.Error("the empty text has no word") })
	}
	newTrie(nil).prefixes("a", func(int, int32) { t.Error("no word is known") })
}
