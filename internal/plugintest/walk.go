package plugintest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Walk writes files of text in which one of two words follows each of 24, by chance: the next word takes one bit. It
// returns the bits per byte of a model that knows this rule.
func Walk(t testing.TB) (folder string, bits float64) {
	random := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 24)
	for i := range words {
		word := make([]byte, 3+i%4)
		for j := range word {
			word[j] = byte('a' + random.IntN(26))
		}
		words[i] = string(word)
	}
	order, folder, count, size := random.Perm(len(words)), t.TempDir(), 0, 0
	for file := range 40 {
		var content strings.Builder
		for at := random.IntN(len(words)); content.Len() < 4000; count++ {
			content.WriteString(words[order[at]] + " ")
			at = (at + 1 + 6*random.IntN(2)) % len(words)
		}
		size += content.Len()
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%02d.md", file)), []byte(content.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder, float64(count) / float64(size)
}
