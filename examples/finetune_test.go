package examples

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/pretrained"
)

// wordsOf returns a tokenizer.json of the most frequent words of the texts.
func wordsOf(t *testing.T, path string, n int) string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	counts := map[string]int{}
	for _, r := range rows[1:] {
		for _, word := range regexp.MustCompile(`\w+`).FindAllString(r[0], -1) {
			counts[word]++
		}
	}
	var words []string
	for word := range counts {
		words = append(words, word)
	}
	slices.SortFunc(words, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	vocabulary := map[string]int{"[UNK]": 0}
	for i, word := range words[:n-1] {
		vocabulary[word] = i + 1
	}
	text, err := json.Marshal(map[string]any{"version": "1.0", "added_tokens": []any{}, "pre_tokenizer": map[string]any{"type": "Whitespace"},
		"model": map[string]any{"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}})
	require.NoError(t, err)
	return string(text)
}

// A tiny model of random weights, which knows 59 words, learns more than chance, and its folder opens again with the
// names of the parts.
func TestFinetune(t *testing.T) {
	require.LessOrEqual(t, linesOf(t, "finetune/main.go"), 80)
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(folder, os.DirFS("../pretrained/testdata/qwen3")))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "tokenizer.json"), []byte(wordsOf(t, "finetune/texts.csv", 60)), 0o600))
	saved := filepath.Join(t.TempDir(), "saved")
	out, _ := said(t, plugintest.Program(t, "finetune"), "-model", folder, "-tokens", "24", "-epochs", "8", "-rate", "0.01", "-save", saved, "the learning rate decays")
	match := regexp.MustCompile(`^test accuracy: ([01]\.\d{3})\n"the learning rate decays" is about (\w+)\n$`).FindStringSubmatch(string(out))
	require.NotNil(t, match, string(out))
	accuracy, err := strconv.ParseFloat(match[1], 64)
	require.NoError(t, err)
	require.Greater(t, accuracy, 0.2, "chance is 0.1")
	base, err := pretrained.Open(t.Context(), saved)
	require.NoError(t, err)
	network := base.Classifier(0)
	require.Empty(t, network.Drawn())
	require.Contains(t, network.Labels, match[2])
	_, err = base.Tokenizer()
	require.NoError(t, err)
	t.Logf("test accuracy %.3f", accuracy)
}
