package checkpoint

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Names of places are in the order of the places up to 12 digits, and each place has one name.
func TestPlace(t *testing.T) {
	places := []place{{0, 1}, {5, 1}, {5, 2}, {5, 10}, {6, 1}, {math.MaxInt64, 1}}
	for i, p := range places {
		back, ok := parsePlace(p.String())
		require.True(t, ok, p.String())
		require.Equal(t, p, back)
		for j, o := range places {
			require.Equal(t, slices.Compare([]int{i}, []int{j}), p.compare(o))
		}
	}
	for _, name := range []string{
		"", "step-5", "step-000000000005.1", "step-000000000005.0", "step-000000000005.02", "step-0000000000005", "step-9999999999999999999",
		"step-000000000005.", "xstep-000000000005", "step-00000000000x",
	} {
		_, ok := parsePlace(name)
		require.False(t, ok, name)
	}
}

func TestFreshName(t *testing.T) {
	for _, prefix := range []string{tempPrefix, trashPrefix} {
		one, two := freshName(prefix), freshName(prefix)
		require.NotEqual(t, one, two)
		require.Regexp(t, staleForm, one)
	}
	for range 100 {
		require.Positive(t, freshToken())
	}
}
