//lazo:norace
package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

var ethernet = link{20e-6, 1e9}

func TestCosts(t *testing.T) {
	// By hand: 8 ranks, 8 MB, 20 µs and 1 GB/s. A ring has 14 messages of 1 MB.
	require.InDelta(t, 14*(20e-6+1e-3), ring(8, 8e6, ethernet), 1e-12)
	require.InDelta(t, 3*(20e-6+8e-3), doubling(8, 8e6, ethernet), 1e-12)
	require.InDelta(t, 6*20e-6+14e-3, halving(8, 8e6, ethernet), 1e-12)
	require.InDelta(t, 6*(20e-6+8e-3), tree(8, 8e6, ethernet), 1e-12)
	// Two ranks exchange halves twice or the whole once.
	require.InDelta(t, ring(2, 1e6, ethernet), doubling(2, 1e6, ethernet)+ethernet.latency, 1e-12)

	for _, n := range []int{4, 8, 64, 4096} {
		at := switchPoint(n, ethernet)
		require.InEpsilon(t, doubling(n, at, ethernet), ring(n, at, ethernet), 1e-9)
		less, _ := fastest([]algorithm{algorithms[0], algorithms[2]}, n, 0.9*at, ethernet)
		require.Equal(t, doubling(n, 0.9*at, ethernet), less)
		_, name := fastest([]algorithm{algorithms[0], algorithms[2]}, n, 1.1*at, ethernet)
		require.Equal(t, "ring", name)
	}
	seconds, name := fastest(algorithms, 1, 1e6, ethernet)
	require.Zero(t, seconds)
	require.Equal(t, "none", name)

	// No algorithm sends less than 2(n-1)/n of the bytes, or takes fewer rounds than a logarithm.
	for _, n := range []int{2, 8, 4096} {
		least := 2 * float64(n-1) / float64(n) * 1e9 / ethernet.bandwidth
		best, _ := fastest(algorithms, n, 1e9, ethernet)
		require.GreaterOrEqual(t, best, least)
		best, _ = fastest(algorithms, n, 0, ethernet)
		require.InEpsilon(t, math.Log2(float64(n))*ethernet.latency, best, 1e-9)
	}
	require.Equal(t, ring(8, 1e9, ethernet), hierarchical(1, 8, 1e9, ethernet, ethernet))
	require.InDelta(t, 1+1.0/2+1.0/3, slowest(3), 1e-12)
	require.InEpsilon(t, math.Log(4096)+0.5772156649, slowest(4096), 1e-4)
}
