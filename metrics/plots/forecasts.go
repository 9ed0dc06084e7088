package plots

import (
	"errors"
	"fmt"
	"slices"
)

// Forecast has one series: the numbers before the forecast, oldest first, and the true and predicted ones after it.
type Forecast struct {
	Name            string
	History         []float64
	True, Predicted []float64
}

const (
	mostForecasts = 60
	mostSteps     = 300
)

// Forecasts draws at most 60 forecasts after their history, of which the last 300 numbers, or as many as there are
// predicted ones.
func Forecasts(of ...Forecast) *Figure {
	f := &Figure{title: "Forecasts"}
	switch {
	case len(of) == 0:
		return failed(f.title, errors.New("there are none"))
	case len(of) > mostForecasts:
		return failed(f.title, fmt.Errorf("%d are more than the %d that are drawn: take some", len(of), mostForecasts))
	}
	for _, c := range of {
		if len(c.Predicted) == 0 || len(c.True) != len(c.Predicted) {
			return failed(f.title, fmt.Errorf("%q has %d true and %d predicted numbers, expected as many, one or more", c.Name, len(c.True), len(c.Predicted)))
		}
		f.panels = append(f.panels, c.chart().panel())
	}
	return f
}

func (c Forecast) chart() *chart {
	past := slices.Clone(c.History[max(0, len(c.History)-max(mostSteps, len(c.Predicted))):])
	steps := func(from, n int) (x []float64) {
		for i := range n {
			x = append(x, float64(from+i))
		}
		return x
	}
	// The first step of the forecast continues the history.
	after := func(values []float64) (x, y []float64) {
		if len(past) == 0 {
			return steps(1, len(values)), slices.Clone(values)
		}
		return steps(0, len(values)+1), append([]float64{past[len(past)-1]}, values...)
	}
	ch := &chart{title: c.Name, xLabel: "time step", alt: c.Name + ": history, true and predicted", x: axis{low: float64(min(1-len(past), 0)), high: float64(len(c.True)), whole: true},
		y: around(past, c.True, c.Predicted).wider()}
	if len(past) > 0 {
		ch.lines = append(ch.lines, line{name: "history", x: steps(1-len(past), len(past)), y: past, colour: grey})
	}
	x, y := after(c.True)
	ch.lines = append(ch.lines, line{name: "true", x: x, y: y, colour: blue})
	x, y = after(c.Predicted)
	ch.lines = append(ch.lines, line{name: "predicted", x: x, y: y, colour: vermilion, dashes: dashed})
	return ch
}
