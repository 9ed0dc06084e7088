package names

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	table := map[string]int{"adam": 1, "sgd": 2}
	found, err := Find("optimizer", "sgd", table)
	require.NoError(t, err)
	require.Equal(t, 2, found)
	_, err = Find("optimizer", "Adma", table)
	require.ErrorIs(t, err, ErrUnknown)
	require.EqualError(t, err, "optimizer \"Adma\": unknown name; did you mean \"adam\"?\n  known: adam, sgd")
	_, err = Find("optimizer", "momentum", table)
	require.EqualError(t, err, "optimizer \"momentum\": unknown name\n  known: adam, sgd")
}

func TestNearest(t *testing.T) {
	known := []string{"binary_crossentropy", "categorical_crossentropy", "sparse_categorical_crossentropy", "mse"}
	for name, want := range map[string]string{
		"crossentropy categorical": "categorical_crossentropy", // all words, the shortest
		"mae":                      "mse",                      // few edits
		"categorical":              "categorical_crossentropy", // contained
		"mse_loss":                 "mse",                      // contains
		"zz":                       "",
	} {
		require.Equal(t, want, Nearest(name, known), name)
	}
}
