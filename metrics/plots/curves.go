package plots

import (
	"errors"
	"fmt"
	"slices"
)

// ROC draws receiver operating characteristics with their areas: for two classes the second one's, otherwise each given
// class against the rest, by default the ten with the smallest areas. The legend reports classes that no or all
// examples have.
func ROC(c Classified, classes ...string) *Figure {
	return c.curves("ROC", "AUC", ROCCurve, chart{xLabel: "false positive rate", yLabel: "true positive rate",
		lines: []line{{x: []float64{0, 1}, y: []float64{0, 1}, colour: grey, dashes: dotted, thin: true}}}, classes)
}

// PrecisionRecall draws precision over recall for the classes of [ROC], with average precisions in the legend.
func PrecisionRecall(c Classified, classes ...string) *Figure {
	steps := func(positive []bool, scores []float64) (Curve, error) {
		curve, err := PrecisionRecallCurve(positive, scores)
		if err != nil {
			return curve, err
		}
		drawn := Curve{Area: curve.Area}
		for i := 1; i < len(curve.X); i++ {
			drawn.X = append(drawn.X, curve.X[i-1], curve.X[i])
			drawn.Y = append(drawn.Y, curve.Y[i], curve.Y[i])
		}
		return drawn, nil
	}
	return c.curves("Precision and recall", "AP", steps, chart{xLabel: "recall", yLabel: "precision"}, classes)
}

const mostCurves = 10

func (c Classified) curves(title, area string, curveOf func([]bool, []float64) (Curve, error), ch chart,
	of []string) *Figure {
	if err := c.check(); err != nil {
		return failed(title, err)
	}
	chosen, err := c.places(of)
	if err != nil {
		return failed(title, err)
	}
	type drawn struct {
		class int
		Curve
	}
	var curves []drawn
	for _, k := range chosen {
		positive, scores := make([]bool, len(c.Scores)), make([]float64, len(c.Scores))
		for i := range scores {
			positive[i], scores[i] = c.is(i, k), c.Scores[i][k]
		}
		curve, err := curveOf(positive, scores)
		switch {
		case errors.Is(err, ErrOneClass) && positive[0]:
			ch.notes = append(ch.notes, note{c.Classes[k], ": all examples are of it"})
		case errors.Is(err, ErrOneClass):
			ch.notes = append(ch.notes, note{c.Classes[k], ": no example is of it"})
		case err != nil:
			return failed(title, err)
		default:
			curves = append(curves, drawn{k, curve})
		}
	}
	if len(curves) == 0 {
		return failed(title, fmt.Errorf("%w: no class has a curve", ErrOneClass))
	}
	if len(of) == 0 && len(curves) > mostCurves {
		slices.SortStableFunc(curves, func(a, b drawn) int {
			if a.Area < b.Area {
				return -1
			}
			return btoi(a.Area > b.Area)
		})
		ch.notes = append(ch.notes, note{figure: fmt.Sprintf("the %d of %d classes with the least area", mostCurves,
			len(curves))})
		curves = curves[:mostCurves]
	}
	ch.x, ch.y = axis{low: 0, high: 1}, axis{low: 0, high: 1}
	for i, d := range curves {
		l := line{name: c.Classes[d.class], figure: fmt.Sprintf(" (%s %.3f)", area, d.Area), colour: colours[i%len(colours)]}
		if i >= len(colours) {
			l.dashes = dashed
		}
		l.x, l.y = thinned(d.X, d.Y, 300)
		ch.lines = append(ch.lines, l)
		ch.alt += ", " + l.name + l.figure
	}
	ch.alt = title + ch.alt
	return &Figure{title: title, panels: []panel{ch.panel()}}
}

func (c Classified) places(of []string) (chosen []int, err error) {
	classes := c.Classes
	for i, name := range of {
		k := slices.Index(classes, name)
		if k < 0 {
			return nil, fmt.Errorf("there is no class %q; the classes are %q", name, classes)
		}
		if slices.Contains(of[:i], name) {
			return nil, fmt.Errorf("the class %q is named twice", name)
		}
		chosen = append(chosen, k)
	}
	if len(of) > 0 {
		return chosen, nil
	}
	for k := range classes {
		if c.Positive != nil || len(classes) > 2 || k == 1 {
			chosen = append(chosen, k)
		}
	}
	return chosen, nil
}
