package examples

import (
	"bytes"
	"image"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

// A classifier of sentences of several lengths sees the order of the words, for without it half of the answers would be
// wrong, and padding changes none of them.
func TestTransformer(t *testing.T) {
	out := runs(t, plugintest.Program(t, "transformer"), "-steps", "250")
	n := numbersOf(t, `^test accuracy of sentences padded to 10 words: (\S+)\ntest accuracy of sentences padded to 16 words: (\S+)\n$`, out)
	t.Logf("250 steps: accuracy %.3f of 1,024 sentences, by the set of words alone 0.5", n[0])
	require.Greater(t, n[0], 0.97)
	require.Equal(t, n[0], n[1], "of the same sentences, padded more")
}

// A tagger uses both sides of a sign, and padding of lines and batches does not count. One direction alone reaches
// 0.80.
func TestTagger(t *testing.T) {
	out := runs(t, plugintest.Program(t, "tagger"), "-steps", "200")
	n := numbersOf(t, `^test accuracy of (\d+) signs in lines padded to \[16 32\]: (\S+)\n`+
		`test accuracy of (\d+) signs in lines padded to \[32\]: (\S+)\n$`, out)
	t.Logf("200 steps: accuracy %.4f of %.0f signs", n[1], n[0])
	require.Greater(t, n[1], 0.99)
	require.Equal(t, n[:2], n[2:], "of the same lines, padded more")
}

// A transformer of an encoder and a decoder finds each word of sentences that it has not seen.
func TestTranslator(t *testing.T) {
	out := runs(t, plugintest.Program(t, "translate"), translation...)
	n := numbersOf(t, `^exact match: (\S+) of 512 sentences\n(?:\w[\w ]+\n\t\w[\w ]+\n){3}$`, out)
	t.Logf("%v: all words right in %.3f of 512 sentences", translation, n[0])
	require.GreaterOrEqual(t, n[0], exact)
}

// A language model of characters predicts the next one much better than their frequencies do.
func TestCharacterModel(t *testing.T) {
	charlm := plugintest.Program(t, "charlm")
	text, bits := plugintest.Walk(t)
	out := runs(t, charlm, "-text", text, "-steps", "120", "-sample", "40")
	n := numbersOf(t, `^perplexity: (\S+) \(by frequencies alone: (\S+); characters: (\d+)\)\n(?s:.{40})\n$`, out)
	t.Logf("120 steps: perplexity %.2f, by frequencies alone %.2f, of %.0f characters, by the rule %.2f", n[0], n[1], n[2], math.Exp2(bits))
	require.Less(t, n[0], 0.65*n[1])
	require.Greater(t, n[0], math.Exp2(bits), "better than the rule of the text: the model sees what it is to predict")

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "short.txt"), []byte("short"), 0o600))
	message, err := exec.Command(charlm, "-text", dir).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(message), "have 5 characters, expected 1280 or more: name another folder with -text")
}

// Both losses of an autoencoder come to what they should, and what it paints looks like digits, of nearly all kinds.
func TestVariationalAutoencoder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "digits.png")
	n := numbersOf(t, `^reconstruction: (\S+), kl: (\S+)\n$`, runs(t, plugintest.Program(t, "vae"), "-steps", "1500", "-out", path))
	require.Less(t, n[0], 24.0, "the mean picture alone has 27.1, the pixels themselves 13.7")
	require.Greater(t, n[1], 1.0, "the numbers say something about the picture")

	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	grid, err := png.Decode(file)
	require.NoError(t, err)
	distance, kinds := likeDigits(t, grid)
	t.Logf("1,500 steps: reconstruction %.2f, kl %.2f; nearest digits %.2f away, of %d kinds", n[0], n[1], distance, kinds)
	require.Less(t, distance, 2.0)
	require.GreaterOrEqual(t, kinds, 8)
}

// likeDigits returns the mean distance of a grid's images to the nearest digits, and the number of different digits.
func likeDigits(t *testing.T, grid image.Image) (distance float64, kinds int) {
	t.Helper()
	const side, edge, pitch, zoom = 12, 8, 9, 5
	require.Equal(t, image.Rect(0, 0, (side*pitch+1)*zoom, (side*pitch+1)*zoom), grid.Bounds())
	digits, _, err := data.Digits()
	require.NoError(t, err)
	ink, labels := digits.Fields()[0].Array.Flat.([]float32), digits.Fields()[1].Array.Flat.([]int32)
	seen := map[int32]bool{}
	for picture := range side * side {
		best, label := math.Inf(1), int32(-1)
		for i, l := range labels {
			var d float64
			for p := range edge * edge {
				x, y := picture%side*pitch+1+p%edge, picture/side*pitch+1+p/edge
				level, _, _, _ := grid.At(x*zoom+zoom/2, y*zoom+zoom/2).RGBA()
				d += math.Pow(1-float64(level)/0xffff-float64(ink[i*edge*edge+p]), 2)
			}
			if d < best {
				best, label = d, l
			}
		}
		distance, seen[label] = distance+math.Sqrt(best)/(side*side), true
	}
	return distance, len(seen)
}

// A frozen body, trained on some digits, stays bit-identical and serves to classify others; the new head depends on its
// seed.
func TestTransfer(t *testing.T) {
	hashes := func(out []byte) [][]byte {
		match := regexp.MustCompile(`\nbody: (\w{16}), then (\w{16})\nhead: (\w{16}), then (\w{16})\n$`).FindSubmatch(out)
		require.NotNil(t, match, string(out))
		return match[1:]
	}
	transfer := plugintest.Program(t, "transfer")
	long := runs(t, transfer, "-seed", "1")
	n := numbersOf(t, `^digits 0 to 4: test accuracy (\S+)\ndigits 5 to 9: test accuracy (\S+)\nbody`, long)
	t.Logf("accuracy %.3f on digits 0 to 4; with a new head, trained for 100 steps, %.3f on 5 to 9", n[0], n[1])
	require.Greater(t, n[0], 0.97)
	require.Greater(t, n[1], 0.85, "of five classes")
	for _, row := range []struct {
		name, seed string
		same       bool
	}{{"the same seed", "1", true}, {"another seed", "2", false}} {
		t.Run(row.name, func(t *testing.T) {
			a, b := hashes(long), hashes(runs(t, transfer, "-steps", "1", "-seed", row.seed))
			require.NotEqual(t, "e3b0c44298fc1c14", string(a[0]), "no parameters at all")
			for _, h := range [][][]byte{a, b} {
				require.Equal(t, h[0], h[1], "the body")
				require.NotEqual(t, h[2], h[3], "the head")
			}
			require.Equal(t, a[0], b[0], "the body")
			require.Equal(t, row.same, bytes.Equal(a[2], b[2]), "the head before its first step")
		})
	}
}

// runs returns an example's stdout; its progress must be on stderr.
func runs(t *testing.T, binary string, args ...string) []byte {
	t.Helper()
	out, stderr := said(t, binary, args...)
	require.Contains(t, stderr, " examples/s")
	return out
}

// Three times as many last choices as the most popular items have, of what the tastes allow.
func TestTwoTower(t *testing.T) {
	program, sum, popular := plugintest.Program(t, "twotower"), 0.0, 0.0
	for _, seed := range seeds {
		n := numbersOf(t, `^recommended: (\S+); the most popular: (\S+)\n$`, runs(t, program, "-seed", seed))
		sum, popular = sum+n[0], popular+n[1]
	}
	require.Greater(t, sum/float64(len(seeds)), 0.33)
	require.Greater(t, sum, 2*popular)
}
