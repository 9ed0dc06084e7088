package text

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The pieces are those of GPT-2's pattern: a contraction, letters, numbers or others with one space before, and spaces
// but the last.
func TestPiece(t *testing.T) {
	for text, want := range map[string][]string{
		"it's we'll I'd 'Tis": {"it", "'s", " we", "'ll", " I", "'d", " '", "Tis"},
		"a  b   ":             {"a", " ", " b", "   "},
		"x\n\ny \n":           {"x", "\n", "\n", "y", " \n"},
		"abc123 45,6!?":       {"abc", "123", " 45", ",", "6", "!?"},
		"élan ½ 循环 🙂🙂x":       {"élan", " ½", " 循环", " 🙂🙂", "x"},
		" ":                   {" "},
		"\u00a0a \u00a0b":     {"\u00a0", "a", " ", "\u00a0", "b"},
		"a\xff\xfeb":          {"a", "\xff\xfe", "b"},
		"'":                   {"'"},
		"HE'S":                {"HE", "'", "S"},
	} {
		var got []string
		for rest := text; rest != ""; {
			n := piece(rest)
			require.Positive(t, n, "%q", text)
			got, rest = append(got, rest[:n]), rest[n:]
		}
		require.Equal(t, want, got, "%q", text)
	}
}
