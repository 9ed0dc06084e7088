package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The memory is in bytes, and the free part is below the whole.
func TestHostMemory(t *testing.T) {
	total, free := hostMemory()
	require.Greater(t, total, uint64(64<<20))
	require.Less(t, total, uint64(1)<<50)
	require.Less(t, free, total)
}
