package main

import (
	"math"
	"math/bits"
)

// link is what a message costs from one rank to another: seconds until its first byte is there, and bytes a second
// from then on. What adding a byte to the receiver's costs is in the bandwidth.
type link struct{ latency, bandwidth float64 }

func (l link) message(bytes float64) float64 { return l.latency + bytes/l.bandwidth }

// An algorithm gives the seconds of a sum of so many bytes over n ranks, which all begin at once over links of their
// own.
type algorithm struct {
	name    string
	seconds func(n int, bytes float64, l link) float64
}

// algorithms are the usual ones of an all-reduce.
var algorithms = []algorithm{{"doubling", doubling}, {"halving", halving}, {"ring", ring}}

// ring sends n-th parts round a ring, once to sum them up and once to hand the sums round: as few bytes as can be,
// and two messages a rank, one behind the other.
func ring(n int, bytes float64, l link) float64 {
	return 2 * float64(n-1) * l.message(bytes/float64(n))
}

// doubling exchanges the whole array with one rank at distance 1, then 2, 4 and so on: as few messages as can be.
// Ranks beyond a power of two give their array to another first, and get the sum from it at the end: then it is a
// bound, since not every rank waits for one of them.
func doubling(n int, bytes float64, l link) float64 {
	rounds, extra := rounds(n)
	return float64(rounds+2*extra) * l.message(bytes)
}

// halving exchanges a half, a quarter and so on until each rank has an n-th part of the sum, and goes the same way
// back (Rabenseifner's algorithm): a ring's bytes in about doubling's messages.
func halving(n int, bytes float64, l link) float64 {
	rounds, extra := rounds(n)
	p := float64(int(1) << rounds)
	return 2*float64(rounds)*l.latency + 2*(p-1)/p*bytes/l.bandwidth + 2*float64(extra)*l.message(bytes)
}

// tree sums towards rank 0 along a binomial tree, and hands the sum back along it: what a broadcast and a gather cost
// too, each half of it.
func tree(n int, bytes float64, l link) float64 {
	return 2 * math.Ceil(math.Log2(float64(n))) * l.message(bytes)
}

// rounds is the logarithm of the largest power of two in n, and 1 if there are ranks beyond it.
func rounds(n int) (rounds, extra int) {
	rounds = bits.Len(uint(n)) - 1
	if n != 1<<rounds {
		extra = 1
	}
	return rounds, extra
}

// fastest is the algorithm of those given that takes the least.
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

// switchPoint is from how many bytes on a ring takes less than doubling, for a power of two of ranks.
func switchPoint(n int, l link) float64 {
	log, ranks := math.Log2(float64(n)), float64(n)
	return (2*(ranks-1) - log) * l.latency * l.bandwidth / (log - 2*(ranks-1)/ranks)
}

// hierarchical sums within each host until each of its ranks has a part, over all hosts by the fastest algorithm,
// each rank its part, and hands the parts round within the host. between is the link of one of the ranks of a host,
// which all send at once.
func hierarchical(hosts, each int, bytes float64, within, between link) float64 {
	inside := ring(each, bytes, within)
	across, _ := fastest(algorithms, hosts, bytes/float64(each), between)
	return inside + across
}

// plane sums along the two axes of a torus, the bytes halved between the ways round it: chips of a TPU's slice. links
// is the bandwidth of all of a chip's links together.
func plane(n int, bytes float64, links, latency float64) float64 {
	hops := 2 * 2 * (math.Sqrt(float64(n)) - 1) // to sum up and to hand round, along each axis
	return hops*latency + 2*float64(n-1)/float64(n)*bytes/links
}

// slowest is by how much the last of n ranks is later than on time, in means of a rank's delay, if delays are
// independent and exponential: 1 + 1/2 + ... + 1/n.
func slowest(n int) (means float64) {
	for k := 1; k <= n; k++ {
		means += 1 / float64(k)
	}
	return means
}
