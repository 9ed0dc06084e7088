package flaxlike

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/flaxlike/decision"
)

type odds int

const (
	oddsUnknown odds = iota
	noOdds
	softmaxed
	sigmoided
	softmax
	sigmoid
)

func (o odds) kindOf(width int) string {
	switch {
	case o == softmax || o == softmaxed:
		return "classes"
	case (o == sigmoid || o == sigmoided) && width == 1:
		return "binary"
	case o == sigmoid || o == sigmoided:
		return "multi-label"
	case o == noOdds:
		return "numbers"
	}
	return "unknown"
}

func (o odds) decided() odds {
	switch o {
	case softmax:
		return softmaxed
	case sigmoid:
		return sigmoided
	}
	return o
}

func oddsOfLoss(l Loss, output *graph.Node) odds {
	switch {
	case l.kind().binary:
		return sigmoid
	case l.kind().output == areLogits: // hinge's
		return oddsUnknown
	}
	switch numbersOf(l, output) {
	case areUntold:
		return oddsUnknown
	case areExclusive:
		return softmax
	case areProbabilities:
		return sigmoided
	}
	return noOdds
}

type answering struct {
	output                        string
	odds                          odds
	calibration                   []decision.Calibration
	thresholds                    []float64
	names                         []string
	oldCalibration, oldThresholds bool // of other weights or calibration
}

func (a answering) className(class int) string {
	if class < len(a.names) {
		return a.names[class]
	}
	return strconv.Itoa(class)
}

// by is for all classes, for each, or none.
func probabilitiesOf(numbers []float64, of odds, by []decision.Calibration) []float64 {
	if of == softmaxed || of == sigmoided {
		return numbers
	}
	if len(by) > 0 {
		numbers = slices.Clone(numbers)
		for i, v := range numbers {
			numbers[i] = by[min(i, len(by)-1)].Apply(v)
		}
	}
	p, sum := make([]float64, len(numbers)), 0.0
	highest := slices.Max(numbers)
	for i, v := range numbers {
		if of == sigmoid {
			p[i] = 1 / (1 + math.Exp(-v))
			continue
		}
		p[i] = math.Exp(v - highest)
		sum += p[i]
	}
	if of == softmax {
		for i := range p {
			p[i] /= sum
		}
	}
	return p
}

func checkThresholds(thresholds []float64) error {
	for _, threshold := range thresholds {
		if !(threshold >= 0 && threshold <= 1) || math.IsNaN(threshold) {
			return fmt.Errorf("a threshold is %v, expected probabilities, 0 to 1", threshold)
		}
	}
	return nil
}
