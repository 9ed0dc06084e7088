package report

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/metrics/plots"
)

// regressed has an output of numbers, [examples, width].
type regressed struct {
	truth, predicted []float64
	width            int
}

func (a *answers) regress() (n regressed, err error) {
	if a.label.Flat == nil {
		return n, errors.New("the test set has no labels")
	}
	output, err := a.p.Output(a.output)
	if err != nil {
		return n, err
	}
	n.truth, n.predicted = a.label.Flat.([]float64), numbers(output.Flat)
	if n.predicted == nil || len(n.truth) != len(n.predicted) {
		return n, fmt.Errorf("labels %v and output %v have unlike numbers", a.label.Dims, output.Dims)
	}
	n.width = len(n.predicted) / a.p.Len()
	return n, nil
}

func (n *regressed) example(of []float64, i int) []float64 { return of[i*n.width : (i+1)*n.width] }

func (n *regressed) column(of []float64, k int) []float64 {
	column := make([]float64, 0, len(of)/n.width)
	for i := k; i < len(of); i += n.width {
		column = append(column, of[i])
	}
	return column
}

func (n *regressed) outputs(step string) (all []plots.Regressed) {
	for k := range n.width {
		name := "output"
		if n.width > 1 {
			name = fmt.Sprint(step, " ", k+1)
		}
		all = append(all, plots.Regressed{Name: name, True: n.column(n.truth, k), Predicted: n.column(n.predicted, k)})
	}
	return all
}

func (n *regressed) describe(a *answers) {
	list := func(of []float64, i int) string {
		var texts []string
		row := n.example(of, i)
		for _, v := range row[:min(len(row), 6)] {
			texts = append(texts, fmt.Sprintf("%.6g", v))
		}
		if len(row) > 6 {
			texts = append(texts, "…")
		}
		return strings.Join(texts, ", ")
	}
	a.truth = func(i int) string { return list(n.truth, i) }
	a.answer = func(i int) string { return list(n.predicted, i) }
	a.errorName, a.errors = "the greatest squared errors", make([]float64, a.p.Len())
	targets := a.prepared.Targets(a.labelField)
	learned := func(v float64, i int) float64 {
		if targets == nil {
			return v
		}
		t := targets[i%len(targets)]
		if t.Log {
			v = math.Log1p(v)
		}
		return (v - t.Shift) / t.Scale
	}
	for i, v := range n.predicted {
		off := learned(v, i) - learned(n.truth[i], i) // as the loss compares
		a.errors[i/n.width] += off * off
	}
	if n.width == 1 {
		a.numberName = "number"
		a.number = func(p flaxlike.Prediction, _ int) ([]float64, error) {
			output, err := p.Output(a.output)
			if err != nil {
				return nil, err
			}
			return numbers(output.Flat), nil
		}
	}
	a.scoreName = "R²"
	if n.width > 1 {
		a.scoreName = "mean R² of the outputs"
	}
	a.score = func(p flaxlike.Prediction, rows []int) (float64, error) {
		output, err := p.Output(a.output)
		if err != nil {
			return 0, err
		}
		predicted, sum := numbers(output.Flat), 0.0
		for k := range n.width {
			sum += r2(rows, func(at, i int) (truth, said float64) { return n.truth[i*n.width+k], predicted[at*n.width+k] })
		}
		return sum / float64(n.width), nil
	}
}

func r2(rows []int, of func(at, i int) (truth, said float64)) float64 {
	mean, squares, rest := 0.0, 0.0, 0.0
	for at, i := range rows {
		truth, said := of(at, i)
		apart := truth - mean
		mean += apart / float64(at+1)
		squares += apart * (truth - mean)
		rest += (truth - said) * (truth - said)
	}
	return 1 - rest/squares
}

func (a *answers) drawNumbers(n regressed, d *draft) {
	step := "output"
	if a.drawForecasts(n, d) {
		step = "step"
	}
	mse := 0.0
	for i, v := range n.predicted {
		mse += (v - n.truth[i]) * (v - n.truth[i]) / float64(len(n.predicted))
	}
	known, err := a.agrees(mse, "mse", "mean_squared_error")
	if err == nil && !known {
		known, err = a.agrees(math.Sqrt(mse), "rmse", "root_mean_squared_error")
	}
	places := 1
	if len(a.label.Dims) > 2 {
		places = n.width
	}
	if err == nil {
		err = a.unconfirmed(known, places)
	}
	if err != nil {
		d.leaveOut("Regression", err)
		return
	}
	d.draw(plots.Regression(n.outputs(step)...))
}
