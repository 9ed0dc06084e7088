package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A sample is the same for a seed, another for another.
func TestOrder(t *testing.T) {
	all, err := load(".", []string{"./testdata/toy"})
	require.NoError(t, err)
	changes := func(seed uint64) (list []string) {
		found := find(all[0])
		order(found, seed)
		for _, m := range found {
			list = append(list, m.change)
		}
		return list
	}
	require.Equal(t, changes(1), changes(1))
	require.NotEqual(t, changes(1), changes(2))
}
