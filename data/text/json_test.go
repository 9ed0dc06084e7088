package text

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// S47: names of a file of any length are cut in messages, whose ends stay.
func TestS47_longNames(t *testing.T) {
	long := strings.Repeat("a", 600_000)
	for _, row := range []struct{ old, new, message string }{
		{`"version": "1.0"`, `"` + long + `": 1`, `json: unknown field "aaa`},
		{`"type": "BPE"`, `"type": "` + long + `"`, `it is not supported, expected one of BPE`},
		{`"merges": [`, `"merges": [["` + long + `", "e"],`, `the vocabulary lacks "aaa`},
		{`"merges": [`, `"merges": ["` + long + `",`, `merges: json: cannot unmarshal array`},
		{`"content": "<|end|>",` + "\n      \"single_word\": false", `"single_word": true, "content": "` + long + `"`, `has 600000 bytes, expected 1 to 1024`},
	} {
		text := strings.Replace(read(t, "tokenizer.json"), row.old, row.new, 1)
		err := new(Tokenizer).UnmarshalJSON([]byte(text))
		require.ErrorContains(t, err, row.message)
		require.Less(t, len(err.Error()), 700, row.message)
	}
}
