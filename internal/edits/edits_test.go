package edits

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDistance(t *testing.T) {
	for _, row := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"adam", "adma", 2}, {"relu", "rellu", 1}, {"same", "same", 0}} {
		require.Equal(t, row.want, Distance(row.a, row.b, 9), "%q and %q", row.a, row.b)
		require.Equal(t, row.want, Distance(row.b, row.a, 9), "%q and %q", row.b, row.a)
	}
	require.Equal(t, 3, Distance("a", "abcdefg", 2), "above most by the lengths alone")
}

func TestNearest(t *testing.T) {
	known := []string{"adam", "adamw", "hard_sigmoid", "relu"}
	for name, want := range map[string]string{
		"Adam": "adam", "adamW": "adamw", "hard-sigmoid": "hard_sigmoid", "hard sigmiod": "hard_sigmoid", "re": "relu", "momentum": "", "x": "",
	} {
		require.Equal(t, want, Nearest(name, known), name)
	}
}
