package text

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file whose components make much of a text, or take many steps for it, is an error before it takes memory.
func TestOpen_growth(t *testing.T) {
	with := func(name, part string) (*Tokenizer, error) {
		var parts map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(read(t, "tokenizer.json")), &parts))
		parts[name] = json.RawMessage(part)
		content, err := json.Marshal(parts)
		require.NoError(t, err)
		return parse(content)
	}
	repeated := func(part string, n int) string {
		return `{"type": "Sequence", "pretokenizers": [` + strings.TrimSuffix(strings.Repeat(part+",", n), ",") + `]}`
	}
	map1000 := func(text string) string { // of the letter a
		units := make([]uint32, 0x362)
		units[0], units[0x161] = 0x100<<10, 'a'|1<<8|0x200<<10
		blob := binary.LittleEndian.AppendUint32(nil, uint32(4*len(units)))
		for _, u := range units {
			blob = binary.LittleEndian.AppendUint32(blob, u)
		}
		return `{"type": "Precompiled", "precompiled_charsmap": "` + base64.StdEncoding.EncodeToString(append(blob, text+"\x00"...)) + `"}`
	}
	split := func(p string) string {
		return `{"type": "Split", "pattern": {"Regex": "` + p + `"}, "behavior": "Isolated", "invert": false}`
	}
	for _, row := range []struct{ name, part, text, message string }{
		{"pre_tokenizer", repeated(`{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}`, 12), strings.Repeat("é", 100), "text: the pre_tokenizer makes"},
		{"pre_tokenizer", repeated(split("."), 1), strings.Repeat("a", 300), ""},
		{"pre_tokenizer", `{"type": "Sequence", "pretokenizers": [` + split(".") + "," + split(strings.Repeat("(?:|)", 16)+"x") + `]}`, strings.Repeat("a", 300), "the pattern takes more than"},
		{"normalizer", map1000(strings.Repeat("x", 1000)), strings.Repeat("a", 5000), "the normalizer Precompiled makes more than 385536 bytes of 5000"},
		{"normalizer", `{"type": "Replace", "pattern": {"String": "a"}, "content": "` + strings.Repeat("x", 1000) + `"}`, strings.Repeat("a", 5000), "the normalizer Replace makes more than 385536 bytes of 5000"},
		{"normalizer", `{"type": "Prepend", "prepend": "` + strings.Repeat("e", 60_000) + `"}`, strings.Repeat("<|end|>a", 10), "text: the normalizer makes"},
	} {
		tokens, err := with(row.name, row.part)
		require.NoError(t, err)
		_, err = tokens.Encode(row.text)
		if row.message == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, row.message)
	}
	_, err := with("normalizer", map1000(strings.Repeat("x", 1<<20)))
	require.ErrorContains(t, err, "the compiled characters have a text of 1048576 bytes, expected at most 1024")
	tokens, err := with("decoder", `{"type": "Replace", "pattern": {"String": "e"}, "content": "`+strings.Repeat("x", 1<<20)+`"}`)
	require.NoError(t, err)
	id, ok := tokens.ID("e")
	require.True(t, ok)
	_, err = tokens.Decode(slices.Repeat([]int32{id}, 200))
	require.ErrorContains(t, err, "text: the decoder Replace makes too many bytes of 200 tokens: token 1 is replaced 1 times by 1048576 bytes")
}
