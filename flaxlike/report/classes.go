package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/metrics/plots"
)

func (r Run) test(ctx context.Context, d *draft) error {
	if r.Test.Len() == 0 {
		return errors.New("the test set has no examples")
	}
	set, err := r.prepared()
	if err != nil {
		return err
	}
	label, err := fieldOf(set, r.Label, "y", "Label")
	if err != nil {
		return err
	}
	p, err := r.Model.Predict(ctx, r.Test)
	if err != nil {
		return err
	}
	if _, err := p.Output(r.Output); err != nil {
		return err
	}
	if label.Flat != nil {
		figures, err := r.Model.Evaluate(ctx, r.Test)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(figures)) {
			value := fmt.Sprintf("%.6g", figures[name])
			if ranks(r.Model.Describe().Metrics, name) {
				value += " (of 200 thresholds; a curve has all)"
			}
			d.figures = append(d.figures, plots.Row{Name: name, Value: value})
		}
	}
	c, err := r.classify(p, label)
	if err != nil {
		if r.Classes != nil || r.Images != "" {
			return err
		}
		if losses := r.Model.Describe().Losses; !slices.ContainsFunc(losses, ofClasses) && len(losses) > 0 && label.Flat != nil {
			err = fmt.Errorf("the model is not a classifier: its loss is %s, and %w", strings.Join(losses, "; "), err)
		}
		d.leaveOut("Confusion matrix, curves and samples", err)
		return nil
	}
	d.figures = append(d.figures, c.rows...)
	if c.several {
		d.leaveOut("Confusion matrix, curves and samples", errors.New("an example may have several classes: the figures have each class"))
		return nil
	}
	counts := make([][]int, len(c.Classes))
	for i := range counts {
		counts[i] = make([]int, len(c.Classes))
	}
	for i, class := range c.predicted {
		counts[c.Labels[i]][class]++
	}
	d.draw(plots.Confusion(counts, c.Classes))
	d.draw(plots.ROC(c.Classified))
	d.draw(plots.PrecisionRecall(c.Classified))
	samples, chosen, err := r.samples(c)
	switch {
	case err != nil && r.Images != "":
		return err
	case err != nil:
		d.leaveOut("Samples", err)
	default:
		d.draw(plots.Samples(samples...).Caption(chosen))
	}
	return nil
}

// prepared has the fields that the model's preparation makes, without labels if the table has none, and these in their
// units.
func (r Run) prepared() (*data.Set, error) {
	p := r.Model.Preparation()
	if p == nil {
		return r.Test, nil
	}
	prepare := p.Apply
	_, labels := p.Columns()
	for _, name := range labels {
		if _, err := r.Test.Field(name); err != nil {
			prepare = p.Inputs
		}
	}
	if r.Test.Mapped() {
		set, err := r.Test.MapBatches(prepare)
		if err != nil {
			return nil, err
		}
		return set.MapBatches(p.Restore)
	}
	return r.Test.Map(prepare, p.Restore)
}

func ranks(metrics []string, figure string) bool {
	return slices.ContainsFunc(metrics, func(line string) bool {
		line, _ = strings.CutSuffix(line, ", weighted")
		name, output, several := strings.Cut(line, " of ")
		if name != "auc" && name != "average_precision" {
			return false
		}
		return figure == name && !several || figure == output+"_"+name
	})
}

func ofClasses(loss string) bool {
	return strings.Contains(loss, "crossentropy") || strings.Contains(loss, "hinge")
}

func fieldOf(set *data.Set, name, usual, what string) (all data.Array, err error) {
	of := name
	if of == "" {
		of = usual
	}
	var values []float64
	for b, err := range set.Batches(min(256, set.Len()), data.Kept).All() {
		if err != nil {
			return all, err
		}
		var names []string
		for _, f := range b.Fields {
			names = append(names, f.Name)
		}
		k := slices.Index(names, of)
		switch {
		case k < 0 && name == "":
			return all, nil
		case k < 0:
			return all, fmt.Errorf("%s: the test set has no field %q; it has %q", what, name, names)
		}
		values = append(values, numbers(b.Fields[k].Array.Flat)...)
		all.Dims = slices.Clone(b.Fields[k].Array.Dims)
	}
	if len(all.Dims) > 0 {
		all.Dims[0] = set.Len()
	}
	all.Flat = values
	return all, nil
}

type classified struct {
	plots.Classified
	predicted []int
	several   bool // several classes per example: rows only
	rows      []plots.Row
}

func (r Run) classify(p flaxlike.Prediction, label data.Array) (c classified, err error) {
	if label.Flat == nil {
		return c, errors.New("the test set has no labels")
	}
	kind, err := p.Kind(r.Output)
	if err != nil {
		return c, err
	}
	probabilities, err := p.Probabilities(r.Output)
	if err != nil {
		return c, err
	}
	predicted, err := p.Classes(r.Output)
	if err != nil {
		return c, err
	}
	own, err := p.ClassNames(r.Output)
	if err != nil {
		return c, err
	}
	if c.Classes = slices.Clone(r.Classes); r.Classes == nil {
		c.Classes = own
	}
	for k, name := range c.Classes {
		if slices.Contains(c.Classes[:k], name) {
			return c, fmt.Errorf("the class %q is named twice", name)
		}
	}
	if len(c.Classes) != len(own) {
		return c, fmt.Errorf("%d names for %d classes", len(c.Classes), len(own))
	}
	values, given := numbers(probabilities.Flat), numbers(label.Flat)
	classes, n := predicted.Flat.([]int32), p.Len()
	rest := len(values) / n
	if len(probabilities.Dims) > 2 || label.Len() != n {
		return c, fmt.Errorf("output of dims %v and labels of dims %v: expected one prediction and one label for each example", probabilities.Dims, label.Dims)
	}
	row := plots.Row{Name: "probabilities", Value: "of each class"}
	if kind == "binary" {
		row.Value = "of the class " + c.Classes[1]
	}
	output := r.Output
	if output == "" {
		output = p.Outputs()[0]
	}
	if by := r.Model.Describe().Calibrations[output]; len(by) > 0 {
		row.Value += fmt.Sprint(", calibrated: ", by)
	}
	c.rows = append(c.rows, row)
	thresholds := r.Model.Describe().Thresholds[output]
	if len(thresholds) > 0 {
		c.rows = append(c.rows, plots.Row{Name: "thresholds", Value: fmt.Sprint(thresholds)})
	}
	if kind == "multi-label" {
		c.several = true
		if len(given) != len(values) {
			return c, fmt.Errorf("labels %v are not 0 or 1 for each of %d classes", label.Dims, rest)
		}
		c.rows = append(c.rows, eachClass(c.Classes, given, classes)...)
		return c, nil
	}
	if c.Labels, err = labelsOf(label.Dims, given, len(own)); err != nil {
		return c, err
	}
	right := 0
	for i, class := range classes {
		c.predicted = append(c.predicted, int(class))
		if scores := values[i*rest : (i+1)*rest]; kind == "binary" {
			c.Scores = append(c.Scores, []float64{1 - scores[0], scores[0]})
		} else {
			c.Scores = append(c.Scores, scores)
		}
		if c.Labels[i] == int(class) {
			right++
		}
	}
	c.rows = append(c.rows, plots.Row{Name: "right classes", Value: fmt.Sprintf("%.6g (%d of %d)", float64(right)/float64(n), right, n)})
	return c, nil
}

func eachClass(names []string, labels []float64, classes []int32) (rows []plots.Row) {
	for k, name := range names {
		var hits, said, are int
		for i := k; i < len(classes); i += len(names) {
			is := labels[i] == 1
			if is {
				are++
			}
			if classes[i] == 1 {
				if said++; is {
					hits++
				}
			}
		}
		rows = append(rows, plots.Row{Name: "class " + name, Value: fmt.Sprintf("%d of %d predictions are right, %d of %d examples are found",
			hits, said, hits, are)})
	}
	return rows
}

func labelsOf(dims []int, given []float64, classes int) (labels []int, err error) {
	hot := len(dims) == 2 && dims[1] == classes
	if !hot && len(dims) != 1 && !(len(dims) == 2 && dims[1] == 1) {
		return nil, fmt.Errorf("labels %v are not one class of %d for each example", dims, classes)
	}
	if !hot {
		for i, v := range given {
			if v != math.Trunc(v) || v < 0 || v >= float64(classes) {
				return nil, fmt.Errorf("the label %v of example %d is not one of %d classes", v, i, classes)
			}
			labels = append(labels, int(v))
		}
		return labels, nil
	}
	for row := range slices.Chunk(given, classes) {
		ones, at := 0, 0
		for k, v := range row {
			switch v {
			case 1:
				ones++
				at = k
			case 0:
			default:
				ones = -1 << 30
			}
		}
		if ones != 1 {
			return nil, fmt.Errorf("the labels of example %d are %v, expected those of one class", len(labels), row)
		}
		labels = append(labels, at)
	}
	return labels, nil
}

func numbers(flat any) []float64 {
	v := reflect.ValueOf(flat)
	all := make([]float64, 0, v.Len())
	for i := range v.Len() {
		e := v.Index(i)
		short, ok := e.Interface().(interface{ Float32() float32 })
		switch {
		case ok:
			all = append(all, float64(short.Float32()))
		case e.CanFloat():
			all = append(all, e.Float())
		case e.CanInt():
			all = append(all, float64(e.Int()))
		case e.CanUint():
			all = append(all, float64(e.Uint()))
		case e.Kind() == reflect.Bool:
			all = append(all, map[bool]float64{true: 1}[e.Bool()])
		default:
			return nil
		}
	}
	return all
}

const (
	mostShown = 24
	mostWrong = 12
)

// samples are at most half wrong, most probable first, then the first correct ones.
func (r Run) samples(c classified) (samples []plots.Sample, how string, err error) {
	predicted := c.predicted
	var wrong, right []int
	for i, p := range predicted {
		if p == c.Labels[i] {
			right = append(right, i)
		} else {
			wrong = append(wrong, i)
		}
	}
	slices.SortStableFunc(wrong, func(a, b int) int {
		return cmp.Compare(c.Scores[b][predicted[b]], c.Scores[a][predicted[a]])
	})
	allWrong, allRight := len(wrong), len(right)
	wrong = wrong[:min(len(wrong), max(mostWrong, mostShown-len(right)))]
	wrong = wrong[:min(len(wrong), mostShown)]
	right = right[:min(len(right), mostShown-len(wrong))]
	how = fmt.Sprintf("No prediction is wrong: %d of %d right ones, in the order of the test set.", len(right), allRight)
	if allWrong > 0 {
		how = fmt.Sprintf("Not a random choice: %d of %d wrong predictions, the most confident first; then %d of %d right ones, in the "+
			"order of the test set.", len(wrong), allWrong, len(right), allRight)
	}
	chosen := slices.Concat(wrong, right)
	set, err := r.Test.Gather(chosen)
	if err != nil {
		return nil, "", err
	}
	images, err := fieldOf(set, r.Images, "x", "Images")
	if err != nil {
		return nil, "", err
	}
	d := images.Dims
	if len(d) != 4 || d[3] != 1 && d[3] != 3 || d[1] < 1 || d[2] < 1 {
		return nil, "", fmt.Errorf("the inputs %v are not images: expected [examples, height, width, 1 or 3]", d)
	}
	black, white := light(images)
	for k, i := range chosen {
		var values []float32
		for _, v := range numbers(images.Slice(k, k+1).Flat) {
			values = append(values, float32(v))
		}
		image, err := plots.Image(values, d[1], d[2], d[3], black, white)
		if err != nil {
			return nil, "", fmt.Errorf("example %d: %w", i, err)
		}
		p := predicted[i]
		samples = append(samples, plots.Sample{Image: image, Label: c.Classes[c.Labels[i]], Predicted: c.Classes[p],
			Probability: min(1, c.Scores[i][p])})
	}
	return samples, how, nil
}

// light is 0 and 1, 0 and 255, or the extremes.
func light(images data.Array) (black, white float32) {
	all := numbers(images.Flat)
	low, high := slices.Min(all), slices.Max(all)
	switch {
	case low >= 0 && high <= 1:
		return 0, 1
	case low >= 0 && high <= 255:
		return 0, 255
	case low < high:
		return float32(low), float32(high)
	}
	return float32(low), float32(low) + 1
}
