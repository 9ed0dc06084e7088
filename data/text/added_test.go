package text

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Special tokens in untrusted text are ordinary text.
func TestEncodeOrdinary(t *testing.T) {
	checked := 0
	for name, content := range kindsOf(t).Files {
		tokens, err := parse(content)
		require.NoError(t, err)
		for _, a := range tokens.added.all {
			if !a.Special || !tokens.bytes { // others find some in the vocabulary
				continue
			}
			ids, err := tokens.EncodeOrdinary("x " + a.Content + " y")
			require.NoError(t, err)
			require.NotContains(t, ids, a.ID, "%s: %s", name, a.Content)
			checked++
		}
	}
	require.Greater(t, checked, 8)
}
