package report

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/arrays"
)

type answers struct {
	model *flaxlike.Model
	about flaxlike.Description
	// set has the fields that the model takes, given those of the user: a table before the preparation.
	set, given *data.Set
	prepared   *tables.Preparation // nil unless given is such a table
	inputs     []string            // fields of given
	p          flaxlike.Prediction
	output     string
	kind       string
	labelField string
	label      data.Array // float64; without labels its Flat is nil
	figures    map[string]float64

	truth, answer func(i int) string
	errors        []float64 // -Inf: its label does not count
	errorName     string
	scoreName     string
	score         func(p flaxlike.Prediction, rows []int) (float64, error)
	numberName    string
	// number returns the probability of the example's answer, or a regression's number, in each row of p; nil if there
	// are several.
	number func(p flaxlike.Prediction, example int) ([]float64, error)
}

func (r Run) answers(ctx context.Context) (*answers, error) {
	set, err := withoutPadding(r.Test)
	if err != nil {
		return nil, err
	}
	if set.Len() == 0 {
		return nil, errors.New("the test set has no examples")
	}
	a := &answers{model: r.Model, set: set, given: set, output: r.Output}
	if err := a.prepare(); err != nil {
		return nil, err
	}
	if err := a.readLabel(r); err != nil {
		return nil, err
	}
	if a.p, err = r.Model.Predict(ctx, a.given); err != nil {
		return nil, err
	}
	if _, err := a.p.Output(r.Output); err != nil {
		return nil, err
	}
	if a.output == "" {
		a.output = a.p.Outputs()[0]
	}
	a.about = r.Model.Describe()
	if a.inputs == nil {
		for _, in := range a.about.Inputs {
			a.inputs = append(a.inputs, in.Name)
		}
	}
	a.kind, err = a.p.Kind(a.output)
	return a, err
}

func withoutPadding(set *data.Set) (*data.Set, error) {
	mask, err := set.Field(data.Mask)
	counts, ok := mask.Flat.([]bool)
	if err != nil || !ok || len(counts) != set.Len() || !slices.Contains(counts, false) {
		return set, nil
	}
	var rows []int
	for i, is := range counts {
		if is {
			rows = append(rows, i)
		}
	}
	return set.Gather(rows)
}

func (a *answers) prepare() (err error) {
	a.prepared = a.model.Preparation()
	if a.prepared == nil {
		return nil
	}
	columns, labels := a.prepared.Columns()
	apply := a.prepared.Apply
	if slices.ContainsFunc(labels, func(name string) bool { _, err := a.given.Field(name); return err != nil }) {
		apply = a.prepared.Inputs
	}
	if a.inputs = columns; !a.given.Mapped() {
		a.set, err = a.given.Map(apply, a.prepared.Restore)
		return err
	}
	if a.set, err = a.given.MapBatches(apply); err == nil {
		a.set, err = a.set.MapBatches(a.prepared.Restore)
	}
	return err
}

func (a *answers) readLabel(r Run) (err error) {
	field := r.Label
	for _, usual := range []string{r.Output, "y"} {
		if _, err := a.set.Field(usual); field == "" && usual != "" && (err == nil || usual == "y") {
			field = usual
		}
	}
	a.labelField = field
	a.label, err = fieldOf(a.set, field, "Label", r.Label != "")
	return err
}

// fieldOf reads a field of all batches. One that is absent is an error if it is needed.
func fieldOf(set *data.Set, name, what string, needed bool) (all data.Array, err error) {
	var values []float64
	for b, err := range set.Batches(min(256, set.Len()), data.Kept).All() {
		if err != nil {
			return all, err
		}
		var names []string
		for _, f := range b.Fields {
			names = append(names, f.Name)
		}
		k := slices.Index(names, name)
		switch {
		case k < 0 && !needed:
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

func (a *answers) evaluate(ctx context.Context) (err error) {
	if a.label.Flat == nil {
		return nil
	}
	a.figures, err = a.model.Evaluate(ctx, a.given)
	return err
}

func (a *answers) named(lines []string) map[string]string {
	of := map[string]string{}
	for _, line := range lines {
		name, rest, _ := strings.Cut(line, ",")
		name, _, _ = strings.Cut(strings.TrimSuffix(name, " (own)"), " on ")
		name, output, several := strings.Cut(name, " of ")
		if !several || output == a.output {
			of[name] = rest
		}
	}
	return of
}

// agrees compares a number with a figure of Evaluate, if the model has such a metric without weights.
func (a *answers) agrees(value float64, metrics ...string) (known bool, err error) {
	of := a.named(a.about.Metrics)
	for _, name := range metrics {
		rest, ok := of[name]
		if !ok || strings.Contains(rest, "weighted") {
			continue
		}
		figure, ok := a.figures[a.output+"_"+name]
		if !ok {
			figure, ok = a.figures[name]
		}
		if !ok {
			continue
		}
		if same := math.Abs(figure-value) <= 1e-4*max(1e-2, math.Abs(figure)); !same && !math.IsNaN(figure) {
			return true, fmt.Errorf("the %s of Evaluate is %.6g and that of the predictions %.6g: the network masks places, or the metric has another label", name, figure, value)
		}
		known = true
	}
	return known, nil
}

var ignored = regexp.MustCompile(`ignore \[([-\d ]*)\]`)

// counting reports which labels count: those of the masked loss from 0 on that it does not ignore, at places that no
// embedding masks.
func (a *answers) counting(labels []float64) ([]bool, error) {
	counts := make([]bool, len(labels))
	for i := range counts {
		counts[i] = true
	}
	if rest, ok := a.named(a.about.Losses)["masked_sparse_categorical_crossentropy"]; ok {
		var leave []float64
		if found := ignored.FindStringSubmatch(rest); found != nil {
			for _, text := range strings.Fields(found[1]) {
				v, _ := strconv.ParseFloat(text, 64)
				leave = append(leave, v)
			}
		}
		for i, v := range labels {
			counts[i] = v >= 0 && !slices.Contains(leave, v)
		}
	}
	if len(labels) == a.p.Len() {
		return counts, nil
	}
	padding := regexp.MustCompile(`Padding="?(-?\d+)`).FindStringSubmatch(strings.Join(a.about.Network, "\n"))
	if padding == nil {
		return counts, nil
	}
	value, _ := strconv.ParseFloat(padding[1], 64)
	if len(a.inputs) != 1 {
		return nil, fmt.Errorf("an embedding has a Padding, and the inputs are %q: it is unknown which one masks places", a.inputs)
	}
	tokens, err := fieldOf(a.set, a.inputs[0], "Input", true)
	if err != nil {
		return nil, err
	}
	all := tokens.Flat.([]float64)
	if len(all) != len(counts) {
		return nil, fmt.Errorf("an embedding with a Padding masks places of %v, and the labels have %d numbers", tokens.Dims, len(counts))
	}
	for i, v := range all {
		counts[i] = counts[i] && v != value
	}
	return counts, nil
}

func (a *answers) unconfirmed(known bool, places int) error {
	network := strings.Join(a.about.Network, "\n")
	may := a.about.Code != "" || strings.Contains(network, "(own)") || a.kind == "numbers" && strings.Contains(network, "Padding=")
	if places < 2 || known || !may {
		return nil
	}
	return errors.New("the network may mask places of its sequences: give the model the metric accuracy, or mse, with which the page compares")
}

func (a *answers) weights() []float64 {
	field := a.about.Card.SampleWeights
	if field == "" {
		return nil
	}
	w, err := fieldOf(a.set, field, "Weights", true)
	if err != nil {
		return nil
	}
	flat := w.Flat.([]float64)
	each, sums := len(flat)/a.p.Len(), make([]float64, a.p.Len())
	for i, v := range flat {
		sums[i/each] += v
	}
	return sums
}

// numbers is nil for texts that are not all numbers.
func numbers(flat any) []float64 {
	if all, ok := arrays.Floats(flat); ok {
		return all
	}
	v := reflect.ValueOf(flat)
	all := make([]float64, v.Len())
	for i := range all {
		switch e := v.Index(i).Interface().(type) {
		case string:
			number, err := arrays.ParseFloat(strings.TrimSpace(e), 64)
			if err != nil {
				return nil
			}
			all[i] = number
		case interface{ Float32() float32 }: // float16 and bfloat16, of weights
			all[i] = float64(e.Float32())
		default:
			return nil
		}
	}
	return all
}
