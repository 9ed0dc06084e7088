package plots

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Reliability compares predicted probabilities with observed frequencies, in nonempty bins of equal width from 0 to 1.
type Reliability struct {
	// Probabilities are the bins' mean probabilities, Shares the fractions that were right, Counts the numbers of
	// examples.
	Probabilities, Shares []float64
	Counts                []int
	// Error is the expected calibration error: the examples' mean difference between share and mean probability.
	Error float64
}

// ReliabilityOf bins probabilities: [0, 1/bins], (1/bins, 2/bins], … right reports whether the predicted event
// occurred. It equals scikit-learn's calibration_curve.
func ReliabilityOf(right []bool, probabilities []float64, bins int) (Reliability, error) {
	r, err := reliabilityOf(right, probabilities, bins)
	if err != nil {
		return Reliability{}, fmt.Errorf("plots: reliability: %w", err)
	}
	return r, nil
}

func reliabilityOf(right []bool, probabilities []float64, bins int) (r Reliability, err error) {
	switch {
	case bins < 1:
		return r, fmt.Errorf("%d bins, expected 1 or more", bins)
	case len(right) != len(probabilities):
		return r, fmt.Errorf("%d labels for %d probabilities", len(right), len(probabilities))
	case len(right) == 0:
		return r, errors.New("there are no examples")
	}
	sums, shares, counts := make([]float64, bins), make([]float64, bins), make([]int, bins)
	for i, p := range probabilities {
		if !(p >= 0 && p <= 1) {
			return r, fmt.Errorf("the probability of example %d is %v, expected 0 to 1: logits have none (flaxlike.Prediction.Probabilities)", i, p)
		}
		at := min(bins-1, max(0, int(math.Ceil(p*float64(bins)))-1))
		for at > 0 && p <= float64(at)/float64(bins) { // corrects rounding
			at--
		}
		for at < bins-1 && p > float64(at+1)/float64(bins) {
			at++
		}
		sums[at] += p
		counts[at]++
		if right[i] {
			shares[at]++
		}
	}
	for at, n := range counts {
		if n == 0 {
			continue
		}
		p, share := sums[at]/float64(n), shares[at]/float64(n)
		r.Probabilities, r.Shares, r.Counts = append(r.Probabilities, p), append(r.Shares, share), append(r.Counts, n)
		r.Error += math.Abs(share-p) * float64(n) / float64(len(right))
	}
	return r, nil
}

const reliabilityBins = 10

// ReliabilityDiagram draws observed frequency over predicted probability in ten bins, with the expected calibration
// error: a curve per given class, by default for the second of two, or for the predicted one of more; with Positive
// for the ten of the greatest error. Scores must be probabilities, whose sum is 1 for each example without Positive.
func ReliabilityDiagram(c Classified, classes ...string) *Figure {
	const title = "Reliability"
	if err := c.check(); err != nil {
		return failed(title, err)
	}
	for i, row := range c.Scores {
		sum := 0.0
		for _, p := range row {
			sum += p
		}
		if c.Positive == nil && math.Abs(sum-1) > 1e-3 {
			return failed(title, fmt.Errorf("the scores of example %d are %.4g together, expected probabilities, whose sum is 1: those of flaxlike.Prediction.Probabilities are", i, sum))
		}
	}
	ch := chart{xLabel: "probability", yLabel: "share that is right", x: axis{low: 0, high: 1}, y: axis{low: 0, high: 1},
		lines: []line{{x: []float64{0, 1}, y: []float64{0, 1}, colour: grey, dashes: dotted, thin: true}}}
	type curve struct {
		name string
		Reliability
	}
	var curves []curve
	draw := func(name string, of func(i int) (right bool, p float64)) error {
		right, probabilities := make([]bool, len(c.Scores)), make([]float64, len(c.Scores))
		for i := range right {
			right[i], probabilities[i] = of(i)
			if p := probabilities[i]; p > 1 && p < 1+1e-3 { // float32 rounding
				probabilities[i] = 1
			}
		}
		r, err := reliabilityOf(right, probabilities, reliabilityBins)
		if err != nil {
			return err
		}
		curves = append(curves, curve{name, r})
		return nil
	}
	if len(classes) == 0 && len(c.Classes) > 2 && c.Positive == nil {
		predicted, err := c.Predicted()
		if err == nil {
			err = draw("the likeliest class", func(i int) (bool, float64) {
				return predicted[i] == c.Labels[i], c.Scores[i][predicted[i]]
			})
		}
		if err != nil {
			return failed(title, err)
		}
	} else {
		chosen, err := c.places(classes)
		if err != nil {
			return failed(title, err)
		}
		for _, k := range chosen {
			if err := draw(c.Classes[k], func(i int) (bool, float64) { return c.is(i, k), c.Scores[i][k] }); err != nil {
				return failed(title, err)
			}
		}
	}
	if len(classes) == 0 && len(curves) > mostCurves {
		slices.SortStableFunc(curves, func(a, b curve) int { return cmp.Compare(b.Error, a.Error) })
		ch.notes = append(ch.notes, note{figure: fmt.Sprintf("the %d of %d classes with the greatest error", mostCurves, len(curves))})
		curves = curves[:mostCurves]
	}
	for i, of := range curves {
		l := line{name: of.name, figure: fmt.Sprintf(" (ECE %.3f)", of.Error), x: of.Probabilities, y: of.Shares, colour: colours[i%len(colours)]}
		if i >= len(colours) {
			l.dashes = dashed
		}
		ch.lines, ch.alt = append(ch.lines, l), ch.alt+", "+l.name+l.figure
	}
	ch.alt = title + ch.alt
	return &Figure{title: title, panels: []panel{ch.panel()}}
}
