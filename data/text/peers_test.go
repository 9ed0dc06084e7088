package text

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var peersOf = flag.String("peers", "", "a `folder` with what testdata/tokenizers.py wrote for many texts")

func unpacked(t testing.TB, path string, to any) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(content))
	require.NoError(t, err)
	require.NoError(t, json.NewDecoder(z).Decode(to))
}

type peerFiles struct {
	Files  map[string]json.RawMessage
	Models map[string]string
}

type peerTexts struct {
	Texts   []string
	Group   int
	Full    map[string][][]string
	Digests map[string][]string
}

func (f peerFiles) opened(t testing.TB) map[string]*Tokenizer {
	t.Helper()
	all := map[string]*Tokenizer{}
	for name, content := range f.Files {
		read, err := parse(content)
		require.NoError(t, err, name)
		all[name] = read
	}
	for name, content := range f.Models {
		model, err := hex.DecodeString(content)
		require.NoError(t, err)
		read, err := readSentencePiece(model)
		require.NoError(t, err, name)
		all[name] = read
	}
	return all
}

// record returns the record of tokenizers.py for a text.
func record(t testing.TB, of *Tokenizer, s, pair string) []string {
	t.Helper()
	one, err := of.EncodeText(Input{Text: s})
	require.NoError(t, err, "%q", s)
	short, err := of.Encode(s)
	require.NoError(t, err, "%q", s)
	require.Equal(t, fmt.Sprint(one.IDs), fmt.Sprint(short), "%q", s)
	back, err := of.Decode(one.IDs)
	require.NoError(t, err)
	if of.file == nil {
		return []string{spaced(one.IDs), lossy(back)}
	}
	both, err := of.EncodeText(Input{Text: s, Pair: &pair})
	require.NoError(t, err)
	bare, err := of.EncodeText(Input{Text: s, Bare: true})
	require.NoError(t, err)
	ordinary, err := of.DecodeOrdinary(one.IDs)
	require.NoError(t, err)
	return []string{spaced(one.IDs), inCharacters(one, s, ""), spaced(both.IDs), spaced(both.Types), inCharacters(both, s, pair), spaced(bare.IDs), lossy(back), lossy(ordinary)}
}

func spaced(ids []int32) string { return strings.Trim(fmt.Sprint(ids), "[]") }

// inCharacters is flat of tokenizers.py.
func inCharacters(e Encoding, s, pair string) string {
	var out []string
	for i, o := range e.Offsets {
		of := s
		if e.Texts[i] == 1 {
			of = pair
		}
		out = append(out, fmt.Sprintf("%d-%d", utf8.RuneCountInString(of[:o[0]]), utf8.RuneCountInString(of[:o[1]])))
	}
	return strings.Join(out, " ")
}

// lossy has U+FFFD for what is not UTF-8, one for the longest beginning of a character, as Rust and Python write it.
func lossy(s string) string {
	var out strings.Builder
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			for n < 4 && n < len(s) && !utf8.FullRuneInString(s[:n+1]) { // the beginning of a character
				n++
			}
			if n > 1 && utf8.FullRuneInString(s[:n]) {
				n--
			}
		}
		out.WriteRune(r)
		s = s[n:]
	}
	return out.String()
}

// Ids, types, offsets and decoded texts of each kind of tokenizer are those of Python's tokenizers and sentencepiece.
func TestOpen_asThePeers(t *testing.T) {
	folder := "testdata"
	if *peersOf != "" {
		folder = *peersOf
	}
	var files peerFiles
	var texts peerTexts
	unpacked(t, filepath.Join(folder, "kinds.json.gz"), &files)
	unpacked(t, filepath.Join(folder, "texts.json.gz"), &texts)
	all := files.opened(t)
	require.Greater(t, len(all), 25)
	require.GreaterOrEqual(t, len(texts.Texts), 3000)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			for i, want := range texts.Full[name] {
				require.Equal(t, want, record(t, all[name], texts.Texts[i], texts.Texts[(i+len(texts.Texts)-1)%len(texts.Texts)]), "%q", texts.Texts[i])
			}
			differ := 0
			for g, want := range texts.Digests[name] {
				var group strings.Builder
				for i := g * texts.Group; i < min((g+1)*texts.Group, len(texts.Texts)); i++ {
					if group.Len() > 0 {
						group.WriteString("\x1e")
					}
					group.WriteString(strings.Join(record(t, all[name], texts.Texts[i], texts.Texts[(i+len(texts.Texts)-1)%len(texts.Texts)]), "\x1f"))
				}
				if sum := sha256.Sum256([]byte(group.String())); hex.EncodeToString(sum[:8]) != want {
					if differ++; differ <= 5 {
						t.Errorf("the texts from %d on differ from those of the peer: %q …", g*texts.Group, texts.Texts[g*texts.Group])
					}
				}
			}
			if differ > 0 {
				t.Errorf("%d of %d groups of texts differ", differ, len(texts.Digests[name]))
			}
			t.Logf("%d texts", len(texts.Texts))
		})
	}
}
