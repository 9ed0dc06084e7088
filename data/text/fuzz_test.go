package text

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file is read or is an error; a tokenizer that was read gives each text back, and is written to the same again.
func FuzzReadTokenizer(f *testing.F) {
	const head = `{"added_tokens":[],"pre_tokenizer":{"type":"ByteLevel"},"decoder":{"type":"ByteLevel"},"model":{"vocab":{},"merges":["a b"]}}`
	f.Add([]byte(read(f, "written.json")), "the loop's\xff <|end|>")
	f.Add([]byte(read(f, "tokenizer.json")), "")
	f.Add([]byte(head), " ")
	f.Fuzz(func(t *testing.T, file []byte, text string) {
		var b Tokenizer
		if json.Unmarshal(file, &b) != nil || b.Size() == 0 {
			return
		}
		ids, err := b.Encode(text)
		require.NoError(t, err)
		back, err := b.Decode(ids)
		require.NoError(t, err)
		require.Equal(t, text, back)
		written, err := json.Marshal(&b)
		if err != nil {
			require.ErrorContains(t, err, "a tokenizer.json has one of a name")
			return
		}
		var again Tokenizer
		require.NoError(t, json.Unmarshal(written, &again), "%s", written)
		require.Equal(t, b.vocabulary, again.vocabulary)
	})
}
