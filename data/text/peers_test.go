package text

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

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
