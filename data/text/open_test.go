package text

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

func kindsOf(t testing.TB) (files peerFiles) {
	t.Helper()
	unpacked(t, "testdata/kinds.json.gz", &files)
	return files
}

// A folder gives the tokenizer, the ids of its roles, and the template; tokenizer.json counts before tokenizer.model.
func TestOpen_folders(t *testing.T) {
	files := kindsOf(t)
	model, err := hex.DecodeString(files.Models["spm-bpe"])
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	_, err = Open(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "text: "+dir+" has no tokenizer.json and no tokenizer.model: file does not exist")
	write("tokenizer.model", string(model))
	tokens, err := Open(dir)
	require.NoError(t, err)
	_, err = json.Marshal(tokens)
	require.ErrorContains(t, err, "cannot be written as one")
	alone, err := Open(filepath.Join(dir, "tokenizer.model"))
	require.NoError(t, err)
	require.Equal(t, tokens.Size(), alone.Size())

	write("tokenizer.json", string(files.Files["bert"]))
	write("special_tokens_map.json", `{"pad_token": "[PAD]", "unk_token": "[MASK]", "cls_token": {"content": "[CLS]", "lstrip": false}}`)
	write("tokenizer_config.json", `{"unk_token": "[UNK]", "bos_token": null, "model_max_length": 512, "chat_template": [{"name": "default", "template": "a"}, {"name": "rag", "template": "b"}]}`)
	tokens, err = Open(dir)
	require.NoError(t, err)
	for role, want := range map[string]int32{"pad": 0, "unk": 1, "cls": 2} {
		id, ok := tokens.Special(role)
		require.True(t, ok, role)
		require.Equal(t, want, id, role)
	}
	_, ok := tokens.Special("bos")
	require.False(t, ok)
	require.Equal(t, 512, tokens.MaxLength())
	require.Equal(t, "a", tokens.ChatTemplate())
	write("chat_template.jinja", "c")
	write("tokenizer_config.json", `{"model_max_length": 1000000000000000019884624838656}`)
	tokens, err = Open(dir)
	require.NoError(t, err)
	require.Equal(t, "c", tokens.ChatTemplate())
	require.Zero(t, tokens.MaxLength())
	for content, message := range map[string]string{`[`: "unexpected EOF", `{"EOS_Token": "x"}`: `it has the name "EOS_Token", expected "eos_token" exactly`, `{"Chat_Template": "x"}`: `"Chat_Template"`,
		`{"eos_token": {"Content": "x"}}`: `it has the name "Content"`, `{"eos_token": {}}`: `it lacks "content"`, `{"eos_token": "a", "eos_token": "b"}`: `it has "eos_token" twice`,
		`{"chat_template": [{"Name": "default", "template": "a"}]}`: `has the name "Name"`} {
		write("tokenizer_config.json", content)
		_, err = Open(dir)
		require.ErrorContains(t, err, "tokenizer_config.json: ")
		require.ErrorContains(t, err, message)
	}
}

// Most truncates the longer text, added tokens included, as tokenizers does with longest_first.
func TestEncodeText_truncates(t *testing.T) {
	bert, err := parse(kindsOf(t).Files["bert"])
	require.NoError(t, err)
	long, short := strings.Repeat("the ", 20), "the the the"
	for _, row := range []struct {
		text, pair string
		most       int
		texts      [2]int
	}{{long, short, 13, [2]int{7, 3}}, {short, long, 13, [2]int{3, 7}}, {long, long, 12, [2]int{4, 5}}, {long, long, 13, [2]int{5, 5}}, {short, short, 9, [2]int{3, 3}}, {long, long, 3, [2]int{}}} {
		e, err := bert.EncodeText(Input{Text: row.text, Pair: &row.pair, Most: row.most})
		require.NoError(t, err)
		var got [2]int
		for i, of := range e.Texts {
			if of >= 0 {
				got[of]++
				require.Equal(t, int32(of), e.Types[i])
			}
		}
		require.Equal(t, row.texts, got)
	}
	e, err := bert.EncodeText(Input{Text: long, Most: 5})
	require.NoError(t, err)
	require.Len(t, e.IDs, 5)
	_, err = bert.EncodeText(Input{Text: long, Most: 1})
	require.EqualError(t, err, "text: Most is 1, expected at least 2 for the tokens that the file adds")
}

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

// Cut and changed models of sentencepiece are errors, and never panics.
func TestOpen_brokenModels(t *testing.T) {
	for name, content := range kindsOf(t).Models {
		model, err := hex.DecodeString(content)
		require.NoError(t, err)
		for n := 0; n < len(model); n += 997 {
			_, _ = readSentencePiece(model[:n])
			changed := []byte(string(model))
			changed[n] ^= 0x55
			if read, err := readSentencePiece(changed); err == nil {
				_, _ = read.Encode("the loop\u00a0takes É ｶﾞ")
			}
		}
		for number, message := range map[protowire.Number]string{1: "expected a text once", 2: "field 2 of a message", 3: "field 3 of a message", 5: "it has a denormalizer"} {
			part := protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), 3)
			if number == 5 {
				part = protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), []byte("x"))
			}
			_, err := readSentencePiece(protowire.AppendBytes(protowire.AppendTag([]byte(string(model)), number, protowire.BytesType), part))
			require.ErrorContains(t, err, message, name)
		}
	}
	const varint, text, fixed = protowire.VarintType, protowire.BytesType, protowire.Fixed32Type
	tag := func(number protowire.Number, kind protowire.Type) []byte {
		return protowire.AppendTag(nil, number, kind)
	}
	of := func(number protowire.Number, parts ...[]byte) []byte {
		return protowire.AppendBytes(tag(number, text), bytes.Join(parts, nil))
	}
	is := func(number protowire.Number, value uint64) []byte {
		return protowire.AppendVarint(tag(number, varint), value)
	}
	whole := of(1, of(1, []byte("<unk>")), is(3, unknownPiece))
	for _, row := range []struct {
		part    []byte
		message string
	}{
		{of(2, is(3, 3)), "its model_type is 3"}, {of(2, is(3, 1), is(3, 2)), "field 3 of a message has the wire type 0 or comes twice"},
		{append(of(2, is(3, 1)), of(2)...), "field 2 of a message has the wire type 2 or comes twice"}, {of(2, of(3, nil)), "field 3 of a message has the wire type 2"},
		{of(2, of(35, nil)), "field 35"}, {of(2, of(24, nil)), "field 24"}, {of(2, is(44, 1)), "field 44"}, {of(3, is(2, 1)), "field 2"}, {of(3, of(3, nil)), "field 3"}, {of(3, of(4, nil)), "field 4"},
		{of(3, of(5, nil)), "field 5"}, {of(5, is(2, 1)), "field 2"}, {is(1, 1), "field 1"}, {is(3, 1), "field 3"}, {is(5, 1), "field 5"}, {of(1, is(1, 1)), "field 1"}, {of(1, of(1, []byte("x")), is(2, 1)), "field 2"},
		{of(1, of(1, []byte("x")), protowire.AppendFixed32(tag(3, fixed), 1)), "field 3 of a message has the wire type 5"},
		{of(2, of(30, []byte("a")), of(30, []byte("b")), is(3, 1)), ""}, // repeated, and not read
	} {
		_, err := readSentencePiece(append(bytes.Clone(whole), row.part...))
		if row.message == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, row.message)
	}
	_, err := readSentencePiece(nil)
	require.ErrorContains(t, err, "it has 0 pieces, of which none is unknown")
}

// Hostile texts and files end: words of any length, many marks, patterns that try everything, normalizers that grow.
func TestOpen_hostile(t *testing.T) {
	texts := []string{strings.Repeat("a", 20_000), strings.Repeat("ab", 10_000), "a" + strings.Repeat("\u0301\u0323", 10_000), strings.Repeat(" ", 20_000), strings.Repeat("\u200d", 5_000),
		strings.Repeat("<", 20_000), strings.Repeat("[MASK", 5_000), strings.Repeat("▁", 5_000), strings.Repeat("循", 5_000)}
	for name, tokens := range kindsOf(t).opened(t) {
		for _, s := range texts {
			ids, err := tokens.Encode(s)
			require.NoError(t, err, name)
			_, err = tokens.Decode(ids)
			require.NoError(t, err, name)
		}
	}
	for _, p := range []string{`(?:a|a)*b`, `(?:a*)*b`, `(?:(?:a|b)+c?)+d`, `(?=(?:a|aa)+$)x`} {
		of, err := readPattern(p)
		require.NoError(t, err)
		_, err = of.matches(nil, strings.Repeat("a", 5_000), nil)
		require.ErrorContains(t, err, "the pattern ", p)
	}
	for p, message := range map[string]string{`(?:(?:a{1000}){1000}){1000}`: "too many repetitions", strings.Repeat("(", 100): "too many brackets", `(?i:ss)`: `"ss" without case`, `a{9999}`: "above 1000",
		`(?<=ab)c`: "a lookbehind", `a{1,2}+`: "after braces", `\p{Greek}`: `the property "Greek"`, `[a&&b]`: `"&&" in a class`, `a)`: "a bracket too many", `\`: "a backslash at the end"} {
		_, err := readPattern(p)
		require.ErrorContains(t, err, message, p)
	}
	growing := `{"type": "Sequence", "normalizers": [` + strings.TrimSuffix(strings.Repeat(`{"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaa"},`, 50), ",") + `]}`
	tokens := &Tokenizer{}
	require.NoError(t, tokens.UnmarshalJSON([]byte(strings.Replace(read(t, "tokenizer.json"), `"normalizer": null`, `"normalizer": `+growing, 1))))
	_, err := tokens.Encode("aaaa")
	require.ErrorContains(t, err, "expected at most 65")
}

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

// A text that is not UTF-8 has no ids, but for tokenizers of bytes.
func TestEncode_notUTF8(t *testing.T) {
	for name, tokens := range kindsOf(t).opened(t) {
		_, err := tokens.Encode("the\xff")
		if !tokens.bytes {
			require.ErrorContains(t, err, "text: the text is not valid UTF-8 at byte 3, and only tokens of bytes encode that", name)
			continue
		}
		require.NoError(t, err, name)
	}
}

// S45: a pipe, a device and a file above the limit are errors at once: Open neither waits nor reads.
func TestS45_openRefusesEndlessFiles(t *testing.T) {
	for name, lay := range map[string]func(path string) error{
		"open FILE: is not a regular file (p---------)":  func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"open FILE: is not a regular file (Dc---------)": func(path string) error { return os.Symlink("/dev/zero", path) },
		"FILE has 1099511627776 bytes, expected at most 268435456": func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("{}"), 0o600), os.Truncate(path, 1<<40))
		},
	} {
		for _, file := range []string{"tokenizer.json", "tokenizer.model"} {
			dir := t.TempDir()
			path := filepath.Join(dir, file)
			require.NoError(t, lay(path))
			_, err := Open(dir)
			require.EqualError(t, err, "text: "+strings.ReplaceAll(name, "FILE", path))
		}
	}
}

// A GGUF's vocabulary gives the ids of the tokenizer.json with the same tokens and merges.
func TestVocabulary(t *testing.T) {
	files := kindsOf(t)
	var texts peerTexts
	unpacked(t, "testdata/texts.json.gz", &texts)
	for name, pre := range map[string]string{"gpt2": "gpt-2", "smollm": "smollm", "llama3": "llama-bpe", "qwen2": "qwen2"} {
		want, err := parse(files.Files[name])
		require.NoError(t, err)
		var content struct {
			Model struct {
				Vocab  map[string]int
				Merges [][2]string
			}
		}
		require.NoError(t, json.Unmarshal(files.Files[name], &content))
		v := Vocabulary{Model: "gpt2", Pre: pre, Tokens: make([]string, len(content.Model.Vocab)), Types: make([]int32, len(content.Model.Vocab)), Template: "t"}
		for token, id := range content.Model.Vocab {
			v.Tokens[id], v.Types[id] = token, normalToken
		}
		for _, a := range want.added.all {
			v.Types[a.ID] = controlToken
		}
		for _, m := range content.Model.Merges {
			v.Merges = append(v.Merges, m[0]+" "+m[1])
		}
		if name == "llama3" {
			v.AddBOS, v.Special = true, map[string]int32{"bos": 0}
		}
		got, err := v.Tokenizer()
		require.NoError(t, err)
		for _, s := range texts.Texts[:500] {
			a, err := want.Encode(s)
			require.NoError(t, err)
			b, err := got.Encode(s)
			require.NoError(t, err)
			require.Equal(t, a, b, "%s: %q", name, s)
		}
		require.Equal(t, "t", got.ChatTemplate())
		v.Pre = "jina-v2-de"
		_, err = v.Tokenizer()
		require.ErrorContains(t, err, `text: the vocabulary of a GGUF: its model is "gpt2" and its pre-tokenizer "jina-v2-de", expected gpt2`)
	}
}
