package main

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// In an empty network the events take what the formulas say.
func TestSimulation_isTheFormula(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5, 7, 8, 12, 16, 64} {
		for _, bytes := range []float64{1, 4096, 1e6, 1e8} {
			check := func(name string, s schedule, formula float64) {
				done := simulate(flat(n, ethernet), s, nil)
				require.GreaterOrEqual(t, slices.Min(done), 0.0, "%s of %d ranks: one waits forever", name, n)
				require.InEpsilon(t, formula, slices.Max(done), 1e-9, "%s of %d ranks, %g bytes", name, n, bytes)
			}
			check("ring", ringSchedule(n, bytes), ring(n, bytes, ethernet))
			r, extra := rounds(n)
			if extra > 0 { // not all ranks of the power of two wait for one beyond it, so some messages are under way early
				took := slices.Max(simulate(flat(n, ethernet), doublingSchedule(n, bytes), nil))
				require.LessOrEqual(t, took, doubling(n, bytes, ethernet)*(1+1e-9))
				require.GreaterOrEqual(t, took, float64(r+1)*ethernet.message(bytes)*(1-1e-9))
			} else {
				check("doubling", doublingSchedule(n, bytes), doubling(n, bytes, ethernet))
				check("halving", halvingSchedule(n, bytes), halving(n, bytes, ethernet))
				check("tree", treeSchedule(n, bytes), tree(n, bytes, ethernet))
			}
		}
	}
}

// Of hosts whose ranks share a card, each rank has its share of the card's bandwidth, and the ranks of a host that
// send at once wait for each other.
func TestSimulation_hosts(t *testing.T) {
	within := link{1e-6, 100e9}
	const count, each, bytes = 8, 4, 64e6
	done := simulate(hosts(count, each, within, ethernet), hostsSchedule(count, each, bytes), nil)
	between := ethernet
	between.bandwidth /= each
	formula := ring(each, bytes, within) + ring(count, bytes/each, between)
	require.InEpsilon(t, formula, slices.Max(done), 0.02)

	// One ring through all ranks, host after host, crosses each card once: as fast with few hosts, and slower with
	// many, since it has as many messages as ranks.
	flat := simulate(hosts(count, each, within, ethernet), ringSchedule(count*each, bytes), nil)
	require.InEpsilon(t, ring(count*each, bytes, ethernet), slices.Max(flat), 0.02)
}

// A sum ends as late as its last rank comes, and the more ranks there are, the later that is.
func TestSimulation_stragglers(t *testing.T) {
	const n, bytes, mean, trials = 32, 1e6, 1e-3, 300
	r := rand.New(rand.NewPCG(0, 0))
	alone := ring(n, bytes, ethernet)
	var late float64
	for range trials {
		start := make([]float64, n)
		for i := range start {
			start[i] = mean * r.ExpFloat64()
		}
		end := slices.Max(simulate(flat(n, ethernet), ringSchedule(n, bytes), start))
		require.LessOrEqual(t, end, slices.Max(start)+alone+1e-12)
		late += (end - alone) / trials
	}
	// The other ranks' sum continues while one is late, so the total is a little less than the latest rank's delay.
	require.InEpsilon(t, mean*slowest(n), late, 0.15)
	require.Less(t, late, 1.1*mean*slowest(n))

	// One slow rank slows all, because a ring's messages are sequential.
	slow := network{ranks: n, ports: n, link: func(from, _ int) (link, int) {
		if from == 5 {
			return link{ethernet.latency, ethernet.bandwidth / 4}, from
		}
		return ethernet, from
	}}
	took := slices.Max(simulate(slow, ringSchedule(n, 1e8), nil))
	require.InEpsilon(t, 4*ring(n, 1e8, ethernet), took, 0.1)
}

func TestSimulation_waitsForEver(t *testing.T) {
	nobody := func(rank, step int) (exchange, bool) { return exchange{-1, 1 - rank, 1}, step < 1 }
	require.Equal(t, []float64{-1, -1}, simulate(flat(2, ethernet), nobody, nil))
}
