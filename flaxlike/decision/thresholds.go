package decision

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/internal/graphs"
)

// Aim is a threshold's goal: one field, or the greatest F1.
type Aim struct {
	Precision float64 // greatest recall at this precision or more, up to 1
	Recall    float64 // greatest precision at this recall or more, up to 1
}

// Check returns an error if both fields are set, or one is not in 0 to 1.
func (a Aim) Check() error {
	for _, least := range []float64{a.Precision, a.Recall} {
		if !(least >= 0 && least <= 1) {
			return fmt.Errorf("decision: the aim is %+v, expected a Precision or a Recall from 0 to 1", a)
		}
	}
	if a.Precision > 0 && a.Recall > 0 {
		return fmt.Errorf("decision: the aim is %+v, expected one of the two: the other is maximized", a)
	}
	return nil
}

// Threshold is a chosen threshold.
type Threshold struct {
	// A class is predicted if its probability is above Value.
	Value                 float64
	Precision, Recall, F1 float64
}

// Choose returns the best threshold of a class for the aim. positive reports which examples belong to the class.
//
// An aim that no threshold reaches, and a class that no or each example has, are errors.
func (a Aim) Choose(probabilities []float64, positive []bool) (Threshold, error) {
	err := errors.Join(a.Check(), checkPositive(probabilities, positive))
	var best Threshold
	if err == nil {
		best, err = a.choose(probabilities, positive)
	}
	if err != nil {
		return Threshold{}, fmt.Errorf("decision: %w", graphs.Inner(err))
	}
	return best, nil
}

func (a Aim) choose(probabilities []float64, positive []bool) (best Threshold, err error) {
	order, ones := make([]int, len(positive)), 0
	for i := range order {
		order[i] = i
		if positive[i] {
			ones++
		}
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(probabilities[j], probabilities[i]) })
	found, reachable, hits := false, 0.0, 0
	for n, i := range order {
		if positive[i] {
			hits++
		}
		p, below := probabilities[i], 0.0
		if n+1 < len(order) {
			below = probabilities[order[n+1]]
		}
		if p == below {
			continue // no threshold is between the two, or it is below 0
		}
		t := Threshold{Value: below + (p-below)/2, Precision: float64(hits) / float64(n+1), Recall: float64(hits) / float64(ones)}
		if t.Value >= p {
			t.Value = below
		}
		if hits > 0 {
			t.F1 = 2 * t.Precision * t.Recall / (t.Precision + t.Recall)
		}
		first := !found
		switch {
		case a.Precision > 0:
			if reachable = max(reachable, t.Precision); t.Precision >= a.Precision && (first || t.Recall > best.Recall) {
				best, found = t, true
			}
		case a.Recall > 0:
			if reachable = max(reachable, t.Recall); t.Recall >= a.Recall && (first || t.Precision >= best.Precision) {
				best, found = t, true
			}
		default:
			if first || t.F1 > best.F1 {
				best, found = t, true
			}
		}
	}
	if !found {
		what, least := "precision", a.Precision
		if a.Recall > 0 {
			what, least = "recall", a.Recall
		}
		return best, fmt.Errorf("no threshold reaches a %s of %g: the best that a threshold reaches is %.6g", what, least, reachable)
	}
	return best, nil
}
