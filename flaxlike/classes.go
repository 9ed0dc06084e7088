package flaxlike

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike/decision"
	"github.com/lazo-ml/lazo/internal/outputs"
)

// ErrNoProbabilities is wrapped by errors about an output without probabilities, as of [Prediction.Classes].
var ErrNoProbabilities = errors.New("no probabilities")

type odds int

const (
	oddsUnknown odds = iota
	noOdds
	softmaxed
	sigmoided
	softmax
	sigmoid
)

func (s *settings) oddsOf(out map[string]*graph.Node, name string) odds {
	switch outputs.MadeBy(out[name]) {
	case "softmax":
		return softmaxed
	case "sigmoid":
		return sigmoided
	}
	of := oddsUnknown
	for _, l := range s.losses {
		if outputOf(out, l.Output) != name {
			continue
		}
		by := oddsOfLoss(l, out[name])
		switch {
		case by == oddsUnknown || by == of:
		case of == oddsUnknown || of == noOdds:
			of = by
		case by != noOdds:
			return oddsUnknown
		}
	}
	return of
}

func oddsOfLoss(l Loss, output *graph.Node) odds {
	switch {
	case l.kind().binary:
		return sigmoid
	case l.kind().output == areLogits: // of a hinge
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

func lastAxis(a data.Array) int {
	if len(a.Dims) < 2 {
		return 1
	}
	return max(1, a.Dims[len(a.Dims)-1])
}

func numbersIn(a data.Array) ([]float64, error) {
	switch flat := a.Flat.(type) {
	case []float64:
		return flat, nil
	case []float32:
		return widened(flat), nil
	}
	return nil, fmt.Errorf("its numbers are %s, expected float32 or float64", a.DType())
}

func finiteIn(a data.Array) ([]float64, error) {
	numbers, err := numbersIn(a)
	at := slices.IndexFunc(numbers, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	switch {
	case at < 0:
		return numbers, err
	case math.IsNaN(numbers[at]):
		return nil, fmt.Errorf("example %d has a NaN, which belongs to no class", at/(len(numbers)/a.Len()))
	}
	return nil, fmt.Errorf("example %d has %+v, which belongs to no class", at/(len(numbers)/a.Len()), numbers[at])
}

// by has one calibration for all classes, one for each, or none.
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
