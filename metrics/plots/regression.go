package plots

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"strings"
)

// Regressed has one output's true and predicted numbers, an example each.
type Regressed struct {
	Name            string
	True, Predicted []float64
}

const (
	mostOutputs = 3
	mostDots    = 1000
	// a table's
	mostRows = 200
)

// Regression draws, for at most 3 outputs, predicted over true values, and the residuals (true - predicted) over
// predicted values and as a histogram. Outputs and dots (1000) of more are evenly spaced. A page has a table of the
// errors of at most 200 outputs and of all, as sklearn.metrics.
func Regression(of ...Regressed) *Figure {
	f := &Figure{title: "Regression", table: [][]string{{"output", "MAE", "RMSE", "R²"}}}
	if len(of) == 0 {
		return failed(f.title, errors.New("there are no outputs"))
	}
	var all errorsOf
	for i, r := range of {
		switch {
		case len(r.True) == 0:
			return failed(f.title, errors.New("there are no examples"))
		case len(r.True) != len(r.Predicted) || len(r.True) != len(of[0].True):
			return failed(f.title, fmt.Errorf("output %q has %d true and %d predicted numbers, expected %d", r.Name, len(r.True), len(r.Predicted), len(of[0].True)))
		}
		e := r.errors()
		all.mae, all.mse, all.r2 = all.mae+e.mae/float64(len(of)), all.mse+e.mse/float64(len(of)), all.r2+e.r2/float64(len(of))
		if i < mostRows {
			f.table = append(f.table, e.row(r.Name))
		}
	}
	shown := min(len(of), mostOutputs)
	for k := range shown {
		f.panels = append(f.panels, of[k*(len(of)-1)/max(1, shown-1)].panels()...)
	}
	if len(of) > 1 {
		f.table = append(f.table, all.row("all outputs"))
	}
	var notes []string
	if n := len(of[0].True); n > mostDots {
		notes = append(notes, fmt.Sprintf("Dots are %d of the %d examples, evenly spaced.", mostDots, n))
	}
	if len(of) > mostOutputs {
		notes = append(notes, fmt.Sprintf("%d of %d outputs are drawn.", mostOutputs, len(of)))
	}
	if len(of) > mostRows {
		notes = append(notes, fmt.Sprintf("The table has the first %d outputs.", mostRows))
	}
	f.caption = strings.Join(notes, " ")
	return f
}

type errorsOf struct{ mae, mse, r2 float64 }

func (e errorsOf) row(name string) []string {
	return []string{name, fmt.Sprintf("%.6g", e.mae), fmt.Sprintf("%.6g", math.Sqrt(e.mse)), fmt.Sprintf("%.6g", e.r2)}
}

func (r Regressed) errors() (e errorsOf) {
	n, mean, squares := float64(len(r.True)), 0.0, 0.0
	for i, v := range r.True {
		apart := v - mean // Welford's method
		mean += apart / float64(i+1)
		squares += apart * (v - mean)
		e.mae += math.Abs(v-r.Predicted[i]) / n
		e.mse += (v - r.Predicted[i]) * (v - r.Predicted[i]) / n
	}
	e.r2 = 1 - e.mse*n/squares // as metrics.R2 for equal targets
	return e
}

func (r Regressed) panels() []panel {
	ink := color.NRGBA{blue.R, blue.G, blue.B, 0x90}
	residuals := make([]float64, len(r.True))
	for i, v := range r.True {
		residuals[i] = v - r.Predicted[i]
	}
	spaced := func(values []float64) (some []float64) {
		k := min(len(values), mostDots)
		for i := range k {
			some = append(some, values[i*len(values)/k])
		}
		return some
	}
	predicted, left := spaced(r.Predicted), spaced(residuals)
	both := around(r.True, r.Predicted)
	against := chart{title: r.Name, figure: ": predicted and true", xLabel: "true", yLabel: "predicted", x: both.wider(), y: both.wider(),
		lines: []line{{x: []float64{both.low, both.high}, y: []float64{both.low, both.high}, colour: grey, dashes: dotted, thin: true},
			{x: spaced(r.True), y: predicted, colour: ink, dots: true, small: true}}}
	span := around(r.Predicted)
	over := chart{title: r.Name, figure: ": residuals", xLabel: "predicted", yLabel: "true - predicted", x: span.wider(), y: around(residuals, []float64{0}).wider(),
		lines: []line{{x: []float64{span.low, span.high}, y: []float64{0, 0}, colour: grey, dashes: dotted, thin: true},
			{x: predicted, y: left, colour: ink, dots: true, small: true}}}
	histogram := histogramOf(r.Name, residuals, "example")
	histogram.figure, histogram.xLabel = ": residuals", "true - predicted"
	for _, c := range []*chart{&against, &over} {
		c.alt = c.title + c.figure
	}
	return []panel{against.panel(), over.panel(), histogram.panel()}
}
