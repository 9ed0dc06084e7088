// Package agreed encodes numbers and texts in words, of which all processes of a job receive the largest.
package agreed

import "strings"

const rankBits = 16

// SetPair writes a number into two words, from which all processes learn the largest and the smallest, each with its
// rank.
func SetPair(words []int64, v, rank int64) {
	w := v<<rankBits | rank
	words[0], words[1] = w, -w
}

func Pair(words []int64) (most, least int64, highest, lowest int) {
	a, b := words[0], -words[1]
	const ranks = 1<<rankBits - 1
	return a >> rankBits, b >> rankBits, int(a & ranks), int(b & ranks)
}

const bytesInWord = 7 // so that no word is negative

// Text is a text of at most 448 bytes. One process sets it, the others pass the zero Text.
type Text [64]int64

func (t *Text) Set(text string) {
	for i := range min(len(text), len(t)*bytesInWord) {
		t[i/bytesInWord] |= int64(text[i]) << (8 * (i % bytesInWord))
	}
}

func (t *Text) String() string {
	var text []byte
	for i := range len(t) * bytesInWord {
		text = append(text, byte(t[i/bytesInWord]>>(8*(i%bytesInWord))))
	}
	said, _, _ := strings.Cut(string(text), "\x00")
	return strings.ToValidUTF8(said, "")
}
