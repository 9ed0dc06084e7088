package text

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A piece of very many letters, as a file without a space has, takes no longer than as many short ones.
func TestBPE_longPieces(t *testing.T) {
	b, err := BPETraining{Size: 300, MinCount: 1}.Train(each(strings.Repeat("ab", 100_000)))
	require.NoError(t, err)
	for text, most := range map[string]int{strings.Repeat("ab", 100_000): 10, strings.Repeat("ba", 100_001): 12, strings.Repeat("x", 100_000): 100_000} {
		ids, err := b.Encode(text)
		require.NoError(t, err)
		require.LessOrEqual(t, len(ids), most)
	}
}
