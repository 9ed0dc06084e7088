package selection

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
)

// Of the tree-structured Parzen estimator (Bergstra et al., 2011), as optuna's defaults.
const (
	startTrials = 10 // drawn at random
	candidates  = 24
	goodShare   = 0.1
	mostGood    = 25
)

func generator(seed uint64, number int) *rand.Rand {
	var of [32]byte
	binary.LittleEndian.PutUint64(of[:], seed)
	binary.LittleEndian.PutUint64(of[8:], uint64(number))
	return rand.New(rand.NewChaCha8(of))
}

// propose draws candidates where good trials are dense, and returns the one with the highest ratio of the good
// trials' density to the others'; nil if all are taken. trials are the best first, failed ones after ended.
func propose(space []Parameter, trials [][]any, ended int, random *rand.Rand, taken func([]any) bool) (best []any) {
	n := min(mostGood, ended, int(math.Ceil(goodShare*float64(len(trials)))))
	highest := math.Inf(-1)
	var good, others []estimator
	for i, p := range space {
		column := func(of [][]any) (values []any) {
			for _, t := range of {
				values = append(values, t[i])
			}
			return values
		}
		good, others = append(good, p.estimator(column(trials[:n]))), append(others, p.estimator(column(trials[n:])))
	}
	for range candidates {
		ratio, values := 0.0, make([]any, len(space))
		for i := range space {
			values[i] = good[i].draw(random)
			ratio += math.Log(good[i].density(values[i])) - math.Log(others[i].density(values[i]))
		}
		if (best == nil || ratio > highest) && !taken(values) {
			best, highest = values, ratio
		}
	}
	return best
}

// estimator is a mixture of truncated normal distributions around values and of a wide one.
type estimator struct {
	Parameter
	weights      []float64 // of Values
	means, sizes []float64 // in shares of the range
}

func (p Parameter) estimator(values []any) estimator {
	e := estimator{Parameter: p}
	if p.Values != nil {
		parts, choices := float64(len(values)+1), float64(len(p.Values))
		for _, v := range p.Values {
			w := 1 / choices
			for _, there := range values {
				n := 1 / parts
				if there == v {
					n++
				}
				w += n / (1 + choices/parts)
			}
			e.weights = append(e.weights, w/parts)
		}
		return e
	}
	for _, v := range values {
		e.means = append(e.means, p.share(v))
	}
	e.means = append(e.means, 0.5)
	slices.Sort(e.means)
	wide, _ := slices.BinarySearch(e.means, 0.5)
	least := 1 / min(100, float64(len(e.means))+1)
	for i, m := range e.means {
		below, above := m, 1-m
		if i > 0 {
			below = m - e.means[i-1]
		}
		if i < len(e.means)-1 {
			above = e.means[i+1] - m
		}
		size := min(1, max(least, below, above))
		if i == wide {
			size = 1
		}
		e.sizes = append(e.sizes, size)
	}
	return e
}

func (p Parameter) share(v any) float64 {
	x, low, high := 0.0, p.Low, p.High
	switch v := v.(type) {
	case int:
		x, low, high = float64(v), low-0.5, high+0.5
	case float64:
		x = v
	}
	if p.Log {
		x, low, high = math.Log(x), math.Log(low), math.Log(high)
	}
	if low == high {
		return 0.5
	}
	return (x - low) / (high - low)
}

func (e estimator) draw(random *rand.Rand) any {
	if e.Values != nil {
		at := random.Float64()
		for i, w := range e.weights {
			if at -= w; at < 0 {
				return e.Values[i]
			}
		}
		return e.Values[len(e.Values)-1]
	}
	i := random.IntN(len(e.means))
	low, high := e.cumulated(i, 0), e.cumulated(i, 1)
	share := e.means[i] + e.sizes[i]*math.Sqrt2*math.Erfinv(2*(low+random.Float64()*(high-low))-1)
	share = min(1, max(0, share))
	if e.Integer {
		return int(min(e.High, max(e.Low, math.Round(e.Low-0.5+share*(e.High-e.Low+1)))))
	}
	return e.between(share)
}

// cumulated is the probability of a lower share by part i, before truncation.
func (e estimator) cumulated(i int, share float64) float64 {
	return (1 + math.Erf((share-e.means[i])/(e.sizes[i]*math.Sqrt2))) / 2
}

// density is that of a real number, and the probability of others.
func (e estimator) density(v any) (d float64) {
	if e.Values != nil {
		return e.weights[slices.Index(e.Values, v)]
	}
	at, half := e.share(v), 0.5/(e.High-e.Low+1)
	for i := range e.means {
		within := e.cumulated(i, 1) - e.cumulated(i, 0)
		if e.Integer {
			d += (e.cumulated(i, at+half) - e.cumulated(i, at-half)) / within
		} else {
			z := (at - e.means[i]) / e.sizes[i]
			d += math.Exp(-z*z/2) / (e.sizes[i] * math.Sqrt(2*math.Pi) * within)
		}
	}
	return d / float64(len(e.means))
}
