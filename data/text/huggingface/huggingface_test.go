package huggingface

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/gomlx/go-huggingface/tokenizers/hftokenizer"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/internal/golden"
)

type peer struct {
	IDs  [][]int32
	Back []string
}

func peers(t *testing.T) (texts []string, of map[string]peer) {
	t.Helper()
	content, err := os.ReadFile("testdata/cases.json")
	require.NoError(t, err)
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(content, &all))
	require.NoError(t, json.Unmarshal(all["texts"], &texts))
	delete(all, "texts")
	of = map[string]peer{}
	for name, part := range all {
		var p peer
		require.NoError(t, json.Unmarshal(part, &p))
		of[name] = p
	}
	require.Greater(t, len(texts), 140)
	return texts, of
}

// folder has one file under the name that Open looks for.
func folder(t *testing.T, as, source string) string {
	t.Helper()
	content, err := os.ReadFile(source)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, as), content, 0o600))
	return dir
}

// Opened tokenizers return the peer's ids, and the same text for them.
func TestOpen_asThePeers(t *testing.T) {
	texts, of := peers(t)
	for name, file := range map[string][2]string{
		"uncased": {"tokenizer.json", "testdata/uncased.json"}, "cased": {"tokenizer.json", "testdata/cased.json"}, "processed": {"tokenizer.json", "testdata/processed.json"},
		"bytes": {"tokenizer.json", "../testdata/tokenizer.json"}, "sentencepiece": {"tokenizer.model", "testdata/tokenizer.model"},
	} {
		t.Run(name, func(t *testing.T) {
			tokens, err := Open(folder(t, file[0], file[1]))
			require.NoError(t, err)
			want := of[name]
			require.Len(t, want.IDs, len(texts))
			for i, s := range texts {
				ids, err := tokens.Encode(s)
				require.NoError(t, err, "%q", s)
				require.Equal(t, want.IDs[i], append([]int32{}, ids...), "%q", s)
				back, err := tokens.Decode(ids)
				require.NoError(t, err)
				require.Equal(t, want.Back[i], back, "%q", s)
			}
			for _, id := range []int32{-1, int32(tokens.Size())} {
				_, err := tokens.Decode([]int32{0, id})
				require.ErrorContains(t, err, fmt.Sprintf(": token 2 of 2 is %d, expected a number from 0 to %d", id, tokens.Size()-1))
			}
			_, err = tokens.Decode([]int32{int32(tokens.Size()) - 1})
			require.NoError(t, err)
		})
	}
}

// Both modules give one tokenization for the same tokenizer.json, because this one gives package text's.
func TestOneTokenization(t *testing.T) {
	texts, _ := peers(t)
	content, err := os.ReadFile("../testdata/tokenizer.json")
	require.NoError(t, err)
	var ours text.BPE
	require.NoError(t, json.Unmarshal(content, &ours))
	opened, err := parse(content)
	require.NoError(t, err)
	theirs, err := hftokenizer.NewFromContent(nil, content)
	require.NoError(t, err)
	others := 0
	for _, s := range texts {
		want, err := ours.Encode(s)
		require.NoError(t, err)
		got, err := opened.Encode(s)
		require.NoError(t, err)
		require.Equal(t, want, got)
		var ids []int32
		for _, id := range theirs.Encode(s) {
			ids = append(ids, int32(id))
		}
		if fmt.Sprint(ids) != fmt.Sprint(got) {
			others++
		}
	}
	t.Logf("go-huggingface has other ids for %d of %d texts", others, len(texts))
	require.Positive(t, others, "go-huggingface has become right: doc.go says that it is not")
}

// What would have other ids is an error: of a text, and of a file.
func TestRefuses(t *testing.T) {
	content, err := os.ReadFile("testdata/uncased.json")
	require.NoError(t, err)
	tokens, err := parse(content)
	require.NoError(t, err)
	for s, message := range map[string]string{
		"zero\u200bwidth":              "huggingface: the text has U+200B at byte 4, which go-huggingface v0.4.0 treats differently from tokenizers: remove it from the text",
		"private \ue000":               "has U+E000 at byte 8",
		"a\xff":                        "huggingface: the text is not valid UTF-8 at byte 1: Hugging Face's tokenizers has no ids for it",
		"x " + strings.Repeat("각", 12): "has 108 bytes: of words with letters beyond ASCII go-huggingface v0.4.0 splits only those of up to 100 bytes as tokenizers does",
	} {
		_, err := tokens.Encode(s)
		require.ErrorContains(t, err, message)
	}
	for _, row := range []struct{ old, new, message string }{
		{`"clean_text":true`, `"clean_text":false`, "its normalizer is \"{Type:BertNormalizer CleanText:false"},
		{`"strip_accents":null`, `"strip_accents":true`, "StripAccents:true"},
		{`{"type":"BertPreTokenizer"}`, `{"type":"Whitespace"}`, "its pre_tokenizer is \"Whitespace"},
		{`"prefix":"##"`, `"prefix":"@@"`, "one prefix"},
		{`"truncation":null`, `"truncation":{"max_length":5}`, "it has truncation or padding, expected none"},
		{`"type":"TemplateProcessing"`, `"type":"RobertaProcessing"`, "its post_processor is"},
		{`"id":"[CLS]","type_id":0`, `"id":"[BOS]","type_id":0`, "its post_processor is"},
		{`"unk_token":"[UNK]"`, `"unk_token":"[NO]"`, `its unknown token "[NO]" is not in the vocabulary`},
		{`"lstrip":false`, `"lstrip":true`, "is taken out of texts in another way"},
		{`"content":"[MASK]"`, `"content":"mask"`, "is taken out of texts in another way"},
		{`"content":"[MASK]"`, `"content":"<unk>"`, `the added token "<unk>" is in the list in addition to the unknown token "[UNK]"`},
		{`"[MASK]":4`, `"[MASK]":5`, `the added token "[MASK]" has the number 4, and 5 in the vocabulary`},
		{`"[MASK]":4`, `"[MASK]":4,"zzz":9`, "expected each from 0 to"},
		{`"version"`, `"more":1,"version"`, `unknown field "more"`},
		{`"type":"WordPiece","unk_token"`, `"type":"Unigram","unk_token"`, "its model is \"Unigram\", expected BPE or WordPiece: go-huggingface v0.4.0 gives other ids than tokenizers for others"},
		{`{`, `[`, "invalid character"},
	} {
		require.True(t, strings.Contains(string(content), row.old), row.old)
		_, err := parse([]byte(strings.Replace(string(content), row.old, row.new, 1)))
		require.ErrorContains(t, err, "huggingface: tokenizer.json", row.new)
		require.ErrorContains(t, err, row.message, row.new)
	}
	_, err = parse([]byte(`{"model":{"type":"BPE"}}`))
	require.EqualError(t, err, "huggingface: text: tokenizer.json: it has no pre_tokenizer, expected ByteLevel")
	empty := t.TempDir()
	_, err = Open(empty)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "huggingface: "+empty+" has no tokenizer.json and no tokenizer.model: file does not exist")
}

// A model of sentencepiece whose options go-sentencepiece leaves out is refused, and broken ones do not panic.
func TestRefuses_sentencePiece(t *testing.T) {
	model, err := os.ReadFile("testdata/tokenizer.model")
	require.NoError(t, err)
	with := func(part, option protowire.Number, value uint64) (changed []byte) {
		for rest := model; len(rest) > 0; {
			number, kind, n := protowire.ConsumeField(rest)
			require.Positive(t, n)
			if number == part {
				require.Equal(t, protowire.BytesType, kind)
				_, _, tag := protowire.ConsumeTag(rest)
				inner, _ := protowire.ConsumeBytes(rest[tag:])
				inner = protowire.AppendVarint(protowire.AppendTag(append([]byte(nil), inner...), option, protowire.VarintType), value)
				changed = protowire.AppendBytes(protowire.AppendTag(changed, number, kind), inner)
			} else {
				changed = append(changed, rest[:n]...)
			}
			rest = rest[n:]
		}
		return changed
	}
	for _, row := range []struct {
		part, option protowire.Number
		value        uint64
		message      string
	}{
		{2, 3, 1, "it is not a BPE with byte_fallback"}, {2, 35, 0, "it is not a BPE with byte_fallback"}, {2, 24, 1, "treat_whitespace_as_suffix"},
		{3, 3, 1, "its normalizer changes texts"}, {3, 4, 1, "its normalizer changes texts"}, {3, 5, 0, "its normalizer changes texts"},
	} {
		_, err := parseSentencePiece(with(row.part, row.option, row.value))
		require.ErrorContains(t, err, "huggingface: tokenizer.model: ")
		require.ErrorContains(t, err, row.message)
	}
	same, err := parseSentencePiece(with(2, 3, 2))
	require.NoError(t, err)
	_, err = same.Encode("\xff")
	require.ErrorContains(t, err, "not valid UTF-8")
	for n := 0; n < len(model); n += 97 {
		_, err := parseSentencePiece(model[:n])
		require.Error(t, err, "cut off at byte %d of %d", n, len(model))
	}
}

var charactersOf = flag.String("characters", "", "a `folder` with what testdata/peers.py characters wrote: characters.txt is compared with it")

// characters.txt has each character that go-huggingface takes for something else. It needs two files of 50 MB.
func TestCharacters(t *testing.T) {
	if *charactersOf == "" {
		require.Greater(t, len(others), 100)
		require.True(t, takenOtherwise(0x200b))
		require.False(t, takenOtherwise('é'))
		return
	}
	other := make([]bool, 0x110001)
	for _, of := range []string{"True", "False"} {
		content, err := os.ReadFile(filepath.Join(*charactersOf, "characters_"+of+".json"))
		require.NoError(t, err)
		tokens, err := hftokenizer.NewFromContent(nil, content)
		require.NoError(t, err)
		file, err := os.Open(filepath.Join(*charactersOf, "characters_"+of+".txt"))
		require.NoError(t, err)
		for lines := bufio.NewScanner(file); lines.Scan(); {
			c, ids, _ := strings.Cut(lines.Text(), " ")
			r, err := strconv.ParseInt(c, 16, 32)
			require.NoError(t, err)
			other[r] = other[r] || strings.ReplaceAll(ids, ",", "") != fmt.Sprint(tokens.Encode("a"+string(rune(r))+"b"))
		}
		require.NoError(t, file.Close())
	}
	var list strings.Builder
	from := -1
	for c, is := range other {
		if is && from < 0 {
			from = c
		} else if !is && from >= 0 {
			fmt.Fprintf(&list, "%x-%x\n", from, c-1)
			from = -1
		}
	}
	golden.Equal(t, "characters.txt", list.String())
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
			require.EqualError(t, err, "huggingface: "+strings.ReplaceAll(name, "FILE", path))
		}
	}
}
