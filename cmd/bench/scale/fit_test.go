package main

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The fit recovers known figures of a machine, also for ranks and sizes that it did not see.
func TestFitted(t *testing.T) {
	truth := shared{latency: 3e-6, cached: 0.4e-9, memory: 1.1e-9, cpus: 2}
	r := rand.New(rand.NewPCG(0, 0))
	for name, noise := range map[string]float64{"exact": 0, "with noise": 0.1} {
		t.Run(name, func(t *testing.T) {
			var seen, unseen []sum
			for _, ranks := range []int{3, 4, 6, 8} {
				for _, bytes := range []float64{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 100e6} {
					m := sum{ranks, bytes, truth.seconds(ranks, bytes) * (1 + noise*(2*r.Float64()-1))}
					if heldOut(m) {
						unseen = append(unseen, m)
					} else {
						seen = append(seen, m)
					}
				}
			}
			got, err := fitted(seen, 2)
			require.NoError(t, err)
			require.InEpsilon(t, truth.latency, got.latency, 0.1+noise)
			require.InEpsilon(t, truth.cached, got.cached, 0.1+noise)
			require.InEpsilon(t, truth.memory, got.memory, 0.1+noise)
			factors := errorsOf(got, unseen)
			require.NotEmpty(t, factors)
			require.Less(t, factors[len(factors)-1], 1.1+2*noise)
		})
	}
	_, err := fitted([]sum{{2, 1, 1}}, 2)
	require.Error(t, err)
}

// A figure that nothing shows is 0, and none is below.
func TestLeastSquares(t *testing.T) {
	require.Equal(t, [3]float64{0.5, 0, 0}, leastSquares([][3]float64{{2, 0, 0}, {2, 0, 0}}))
	x := leastSquares([][3]float64{{1, 1, 0}, {1, 4, 0}, {1, 9, 1}})
	for _, v := range x {
		require.GreaterOrEqual(t, v, 0.0)
	}
}
