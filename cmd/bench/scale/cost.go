package main

import (
	"math"
	"math/bits"
)

// seconds per message, bytes per second, with the receiver's addition
type link struct{ latency, bandwidth float64 }

func (l link) message(bytes float64) float64 { return l.latency + bytes/l.bandwidth }

type algorithm struct {
	name    string
	seconds func(n int, bytes float64, l link) float64
}

var algorithms = []algorithm{{"doubling", doubling}, {"halving", halving}, {"ring", ring}}

// ring passes n-th parts around a ring, to sum and then to distribute: the fewest bytes.
func ring(n int, bytes float64, l link) float64 {
	return 2 * float64(n-1) * l.message(bytes/float64(n))
}

// doubling exchanges the whole array at distance 1, 2, 4 and so on: the fewest messages. Ranks beyond a power of two
// send to another and receive the sum; then it is an upper bound.
func doubling(n int, bytes float64, l link) float64 {
	rounds, extra := rounds(n)
	return float64(rounds+2*extra) * l.message(bytes)
}

// halving (Rabenseifner's algorithm) has ring's bytes with about doubling's messages.
func halving(n int, bytes float64, l link) float64 {
	rounds, extra := rounds(n)
	p := float64(int(1) << rounds)
	return 2*float64(rounds)*l.latency + 2*(p-1)/p*bytes/l.bandwidth + 2*float64(extra)*l.message(bytes)
}

// tree sums to rank 0 along a binomial tree and back. A broadcast or gather costs half.
func tree(n int, bytes float64, l link) float64 {
	return 2 * math.Ceil(math.Log2(float64(n))) * l.message(bytes)
}

// The exponent of the largest power of two in n, and 1 for a rest.
func rounds(n int) (rounds, extra int) {
	rounds = bits.Len(uint(n)) - 1
	if n != 1<<rounds {
		extra = 1
	}
	return rounds, extra
}

func fastest(list []algorithm, n int, bytes float64, l link) (seconds float64, name string) {
	if n < 2 {
		return 0, "none"
	}
	seconds = math.Inf(1)
	for _, a := range list {
		if s := a.seconds(n, bytes, l); s < seconds {
			seconds, name = s, a.name
		}
	}
	return seconds, name
}

// switchPoint returns the bytes above which ring beats doubling, for a power of two of ranks.
func switchPoint(n int, l link) float64 {
	log, ranks := math.Log2(float64(n)), float64(n)
	return (2*(ranks-1) - log) * l.latency * l.bandwidth / (log - 2*(ranks-1)/ranks)
}

// hierarchical sums within hosts, then each part over hosts, and distributes. between is a rank's link while its whole
// host sends.
func hierarchical(hosts, each int, bytes float64, within, between link) float64 {
	inside := ring(each, bytes, within)
	across, _ := fastest(algorithms, hosts, bytes/float64(each), between)
	return inside + across
}

// plane sums along both axes of a torus, like a TPU slice. links is the bandwidth of a chip's links.
func plane(n int, bytes float64, links, latency float64) float64 {
	hops := 2 * 2 * (math.Sqrt(float64(n)) - 1) // sum and distribute, per axis
	return hops*latency + 2*float64(n-1)/float64(n)*bytes/links
}

// slowest is the expected maximum of n exponential delays, in means: 1 + 1/2 + ... + 1/n.
func slowest(n int) (means float64) {
	for k := 1; k <= n; k++ {
		means += 1 / float64(k)
	}
	return means
}
