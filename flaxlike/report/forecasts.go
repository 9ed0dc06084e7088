package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/metrics/plots"
)

const (
	mostForecasts = 6
	leastWindow   = 10
)

func (a *answers) drawForecasts(n regressed, d *draft) (is bool) {
	if len(a.about.Inputs) != 1 || n.width < 2 {
		return false
	}
	in := a.about.Inputs[0]
	if !strings.HasPrefix(in.Type, "float") || len(in.Dims) != 1 && len(in.Dims) != 2 || in.Dims[0] < 2 {
		return false
	}
	if len(in.Dims) == 1 {
		first, err := a.input(in.Name, identity(min(a.p.Len(), 9)))
		if err != nil {
			d.leaveOut("Forecasts", err)
			return false
		}
		if !windows(first, in.Dims[0]) {
			if in.Dims[0] >= leastWindow {
				d.leaveOut("Forecasts", fmt.Errorf("the input %v may be a series, but its examples are not windows in the order of time: give it as [examples, length, 1]", in.Dims))
			}
			return false
		}
	}
	count, features := a.p.Len(), 1
	how := fmt.Sprintf("%d of %d examples, evenly spaced.", min(count, mostForecasts), count)
	if len(in.Dims) == 2 {
		if features = in.Dims[1]; features > 1 {
			how += fmt.Sprintf(" The history is the input's feature 0 of %d.", features)
		}
	}
	chosen := make([]int, min(count, mostForecasts))
	for k := range chosen {
		chosen[k] = k * count / len(chosen)
	}
	values, err := a.input(in.Name, chosen)
	if a.prepared != nil {
		if values, how, err = a.history(in.Dims[0], chosen, how); err == nil {
			features = 1
		}
	}
	if err != nil {
		d.leaveOut("Forecasts", err)
		return false
	}
	var all []plots.Forecast
	for k, i := range chosen {
		var history []float64
		for at := range in.Dims[0] {
			history = append(history, values[(k*in.Dims[0]+at)*features])
		}
		all = append(all, plots.Forecast{Name: fmt.Sprint("example ", i), History: history, True: n.example(n.truth, i), Predicted: n.example(n.predicted, i)})
	}
	d.draw(plots.Forecasts(all...).Caption(how))
	return true
}

// history is a column of the table, in its units: that of the target, or the first.
func (a *answers) history(length int, rows []int, how string) ([]float64, string, error) {
	name := a.inputs[0]
	for _, input := range a.inputs {
		if _, labels := a.prepared.Columns(); slices.Contains(labels, "next "+input) { // series.Windows names targets so
			name = input
		}
	}
	set, err := a.given.Gather(rows)
	if err != nil {
		return nil, how, err
	}
	column, err := fieldOf(set, name, "Input", true)
	if err != nil {
		return nil, how, err
	}
	values, ok := column.Flat.([]float64)
	if !ok || len(values) != len(rows)*length {
		return nil, how, fmt.Errorf("the column %q does not have %d numbers for each example, to be drawn as the history", name, length)
	}
	return values, fmt.Sprintf("%s The history is the column %q.", how[:strings.Index(how, ".")+1], name), nil
}

func (a *answers) input(name string, rows []int) ([]float64, error) {
	set, err := a.set.Gather(rows)
	if err != nil {
		return nil, err
	}
	field, err := fieldOf(set, name, "Input", true)
	if err != nil {
		return nil, err
	}
	if in := a.about.Inputs[0]; len(field.Dims) == 0 || !slices.Equal(field.Dims[1:], in.Dims) {
		return nil, fmt.Errorf("the input %q is %v, and was %v for an example when the network was built", name, field.Dims, in.Dims)
	}
	return field.Flat.([]float64), nil
}

// windows reports whether each example continues the one before by one stride.
func windows(examples []float64, length int) bool {
	row := func(i int) []float64 { return examples[i*length : (i+1)*length] }
	count := len(examples) / length
	for stride := 1; stride < length && count > 1; stride++ {
		same := true
		for i := 1; i < count && same; i++ {
			same = slices.Equal(row(i - 1)[stride:], row(i)[:length-stride])
		}
		if same {
			return slices.Min(examples) < slices.Max(examples)
		}
	}
	return false
}
