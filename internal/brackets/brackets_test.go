package brackets

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClosing(t *testing.T) {
	end, err := Closing(`f(a[1], "\")", {2})(3)`, 1)
	require.NoError(t, err)
	require.Equal(t, 18, end)
	_, err = Closing(`("a)`, 0)
	require.ErrorContains(t, err, "a bracket is not closed")
}

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		`a, {b, c}, "d, e", f(1, [2, 3])`: {"a", "{b, c}", `"d, e"`, "f(1, [2, 3])"},
		"":                                {""},
		"a,":                              {"a", ""},
	} {
		got, err := Split(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{"a), (b": "a bracket too many", "(a": "is not closed", `"a`: "is not closed"} {
		_, err := Split(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string][]int{"1,0": {1, 0}, "{2}": {2}, "[3, 4]": {3, 4}, "": nil, "{}": nil} {
		got, err := Numbers(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, wrong := range []string{"-1", "1,", "a", "99999999999999999999"} {
		_, err := Numbers(wrong)
		require.ErrorContains(t, err, "expected numbers", wrong)
	}
}
