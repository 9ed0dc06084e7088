package plots

import (
	"errors"
	"fmt"
	"math"
)

// Weights are the values of a model's variable.
type Weights struct {
	Name   string
	Values []float32
}

const (
	bins           = 40
	mostHistograms = 200
)

// Histograms draws each variable's weights in 40 bins, for at most 200 variables. The legend shows number, mean,
// standard deviation, and the count of non-finite values, which have no bar.
func Histograms(of ...Weights) *Figure {
	f := &Figure{title: "Weights"}
	switch {
	case len(of) == 0:
		return failed(f.title, errors.New("there are no variables"))
	case len(of) > mostHistograms:
		return failed(f.title, fmt.Errorf("%d variables are more than the %d that are drawn: take some", len(of),
			mostHistograms))
	}
	for _, w := range of {
		if len(w.Values) == 0 {
			return failed(f.title, fmt.Errorf("%q has no numbers", w.Name))
		}
		c := w.chart()
		f.panels = append(f.panels, c.panel())
	}
	return f
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (w Weights) chart() chart { return histogramOf(w.Name, w.Values, "weight") }

func histogramOf[F float32 | float64](title string, values []F, of string) chart {
	low, high := math.Inf(1), math.Inf(-1)
	sum, squares, n := 0.0, 0.0, 0.0
	for _, v := range values {
		if v := float64(v); finite(v) {
			low, high = min(low, v), max(high, v)
			n++
			apart := v - sum // Welford's method: sum is the mean so far
			sum += apart / n
			squares += apart * (v - sum)
		}
	}
	c := chart{title: title, xLabel: "value", yLabel: of + "s", notes: []note{{figure: counted(len(values), of)}}}
	if left := len(values) - int(n); left > 0 {
		c.notes = append(c.notes, note{figure: fmt.Sprintf("%d not finite", left)})
	}
	c.x, c.y = around([]float64{low, high}), axis{low: 0, high: 1}
	if n > 0 {
		c.notes = append(c.notes, note{figure: "mean " + number(sum)},
			note{figure: "standard deviation " + number(math.Sqrt(squares/n))})
		counts := make([]float64, bins)
		for _, v := range values {
			if v := float64(v); finite(v) {
				counts[min(bins-1, int((v-c.x.low)/(c.x.high-c.x.low)*bins))]++
			}
		}
		width := (c.x.high - c.x.low) / bins
		for i, n := range counts {
			if n > 0 {
				c.bars = append(c.bars, bar{c.x.low + width*float64(i), c.x.low + width*float64(i+1), n})
			}
			c.y.high = max(c.y.high, n)
		}
	}
	c.y.whole = true
	c.alt = "histogram of " + title
	for _, n := range c.notes {
		c.alt += ", " + n.figure
	}
	return c
}
