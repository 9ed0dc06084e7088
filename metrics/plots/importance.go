package plots

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Importance has the mean and standard deviation of a metric's fall when a feature is permuted, over repeats.
type Importance struct {
	Name            string
	Mean, Deviation float64
}

const mostImportances = 100

// Importances draws a bar for each of at most 100 features, with the deviation as a line.
func Importances(of ...Importance) *Figure {
	f := &Figure{title: "Importance"}
	switch {
	case len(of) == 0:
		return failed(f.title, errors.New("there are no features"))
	case len(of) > mostImportances:
		return failed(f.title, fmt.Errorf("%d features are more than the %d that are drawn: take some", len(of), mostImportances))
	}
	for _, i := range of {
		if !finite(i.Mean) || !finite(i.Deviation) || i.Deviation < 0 {
			return failed(f.title, fmt.Errorf("feature %q has the mean %v and the deviation %v, expected finite numbers", i.Name, i.Mean, i.Deviation))
		}
	}
	of = slices.Clone(of)
	slices.SortStableFunc(of, func(a, b Importance) int { return cmp.Compare(b.Mean, a.Mean) })
	f.panels = []panel{{fmt.Sprintf("the importance of %s, most of %s", counted(len(of), "feature"), of[0].Name), panelWidth, importanceRow * vg.Length(len(of)),
		func(c canvas) { drawImportances(c, of) }}}
	return f
}

const importanceRow vg.Length = 17

func drawImportances(c canvas, of []Importance) {
	low, high, names, figures := 0.0, 0.0, vg.Length(0), vg.Length(0)
	texts := make([]string, len(of))
	for k, i := range of {
		low, high = min(low, i.Mean-i.Deviation), max(high, i.Mean+i.Deviation)
		texts[k] = fmt.Sprintf("%.4f ± %.4f", i.Mean, i.Deviation)
		if size := math.Abs(i.Mean); size >= 1e4 || size > 0 && size < 1e-3 {
			texts[k] = fmt.Sprintf("%.3g ± %.2g", i.Mean, i.Deviation)
		}
		names, figures = max(names, writing{}.width(i.Name)), max(figures, writing{}.width(texts[k]))
	}
	names = min(names, 130)
	left, right := names+8, panelWidth-figures-10
	at := func(v float64) vg.Length {
		if high == low {
			return left
		}
		return left + (right-left)*vg.Length((v-low)/(high-low))
	}
	for k, i := range of {
		y := importanceRow * (vg.Length(k) + 0.5)
		c.text(names, y, names, writing{align: draw.XRight}, i.Name)
		c.box(min(at(0), at(i.Mean)), y-5, max(at(0), at(i.Mean))-min(at(0), at(i.Mean)), 10, colours[5], nil)
		from, to := c.at(at(i.Mean-i.Deviation), y), c.at(at(i.Mean+i.Deviation), y)
		c.StrokeLine2(draw.LineStyle{Color: dark, Width: 1}, from.X, from.Y, to.X, to.Y)
		c.text(panelWidth, y, 0, writing{align: draw.XRight}, texts[k])
	}
	top, bottom := c.at(at(0), 0), c.at(at(0), importanceRow*vg.Length(len(of)))
	c.StrokeLine2(draw.LineStyle{Color: grey, Width: 0.75}, top.X, top.Y, bottom.X, bottom.Y)
}
