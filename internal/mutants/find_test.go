package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each change of the toy, by its function. Texts have none: String, and the value returned with an error.
func TestFind(t *testing.T) {
	all, err := load(".", []string{"./testdata/toy"})
	require.NoError(t, err)
	changes := map[string][]string{}
	for _, m := range find(all[0]) {
		changes[m.function] = append(changes[m.function], m.change)
	}
	for _, list := range changes {
		slices.Sort(list)
	}
	require.Equal(t, map[string][]string{
		"Half": {
			"0 in n < 0: 1", "0 in n > 0: 1", "1 in n%2 == 1: 2", "2 in n / 2: 3", "2 in n%2: 3", "n / 2: / to *", "n < 0: < to <=", "n > 0: > to >=",
			"n%2 == 1 && n > 0: && to ||", "n%2 == 1: == to !=", "n%2: % to *",
			"return -1, nil: result 1 is *new(int)", "return 0, errNegative: result 2 is nil", "return n / 2, nil: result 1 is *new(int)",
		},
		"Untested": {"1 in n + 1: 2", "n + 1: + to -", "return n + 1: result 1 is *new(int)"},
	}, changes)
}
