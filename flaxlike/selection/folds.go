package selection

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
	"text/tabwriter"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/shield"
)

// CrossValidation is the result of [CrossValidate].
type CrossValidation struct {
	// Figures are Evaluate's on each fold's held-out part.
	Figures []map[string]float64
	// Mean and Deviation (population's) are those of Figures.
	Mean, Deviation map[string]float64
	// Predictions are for all examples in the set's order, by models not trained on them; for classes, calibrated
	// probabilities.
	Predictions flaxlike.Prediction
}

// CrossValidate divides a set by data.Set.Folds with seed and by, which may be data.Stratified or data.Grouped. For
// each fold, from 0, fit trains a new model on the rest of the set; CrossValidate evaluates it on the held-out part and
// closes it. The first error ends it. A set with examples that do not count ([data.Mask]) is an error.
func CrossValidate(ctx context.Context, set *data.Set, folds int, seed uint64, fit func(ctx context.Context, fold int, training *data.Set) (*flaxlike.Model, error),
	by ...data.SplitOption) (*CrossValidation, error) {
	found, err := crossValidate(ctx, set, folds, seed, fit, by)
	if err != nil {
		return nil, fmt.Errorf("selection: cross-validate: %w", graphs.Inner(err))
	}
	return found, nil
}

func crossValidate(ctx context.Context, set *data.Set, folds int, seed uint64, fit func(context.Context, int, *data.Set) (*flaxlike.Model, error), by []data.SplitOption) (*CrossValidation, error) {
	switch {
	case set == nil:
		return nil, errors.New("the set is nil")
	case fit == nil:
		return nil, errors.New("the function that fits a model is nil")
	}
	if counting := (data.Batch{Fields: set.Fields()}).Samples(); counting != set.Len() {
		return nil, fmt.Errorf("%d of the set's %d examples do not count (%q): remove them", set.Len()-counting, set.Len(), data.Mask)
	}
	c := &CrossValidation{}
	all, last := outOfFold{}, flaxlike.Prediction{}
	number := 0
	for fold, err := range set.Folds(folds, seed, by...) {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		err = func() (err error) {
			var m *flaxlike.Model
			err = shield.Do(func() (err error) { m, err = fit(ctx, number, fold.Train); return err })
			if m == nil {
				return cmp.Or(err, errors.New("the model is nil"))
			}
			defer func() { err = errors.Join(err, m.Close()) }()
			if err != nil {
				return err
			}
			figures, err := m.Evaluate(ctx, fold.Test)
			if err != nil {
				return err
			}
			c.Figures = append(c.Figures, figures)
			if last, err = m.Predict(ctx, fold.Test); err != nil {
				return err
			}
			outputs, failed := decided(last)
			if len(failed) > 0 {
				return failed
			}
			return all.put(outputs, fold.TestRows)
		}()
		if err != nil {
			return nil, fmt.Errorf("fold %d of %d: %w", number, folds, graphs.Inner(err))
		}
		number++
	}
	outputs, err := all.inOrder(set.Len())
	if err == nil {
		c.Predictions, err = last.WithOutputs(outputs)
	}
	return c, cmp.Or(err, c.summarize())
}

func (c *CrossValidation) summarize() error {
	c.Mean, c.Deviation = map[string]float64{}, map[string]float64{}
	k := float64(len(c.Figures))
	for name := range c.Figures[0] {
		for i, figures := range c.Figures {
			if v, ok := figures[name]; !ok || len(figures) != len(c.Figures[0]) {
				return fmt.Errorf("fold %d has the figures %q, and fold 0 %q: give all models the same losses and metrics", i,
					slices.Sorted(maps.Keys(figures)), slices.Sorted(maps.Keys(c.Figures[0])))
			} else {
				c.Mean[name] += v / k
			}
		}
		for _, figures := range c.Figures {
			c.Deviation[name] += (figures[name] - c.Mean[name]) * (figures[name] - c.Mean[name]) / k
		}
		c.Deviation[name] = math.Sqrt(c.Deviation[name])
	}
	return nil
}

func (c *CrossValidation) String() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	names := slices.Sorted(maps.Keys(c.Mean))
	fmt.Fprintf(table, "fold\t%s\n", strings.Join(names, "\t"))
	row := func(title string, figures map[string]float64) {
		fmt.Fprint(table, title)
		for _, name := range names {
			fmt.Fprintf(table, "\t%.6g", figures[name])
		}
		fmt.Fprintln(table)
	}
	for i, figures := range c.Figures {
		row(fmt.Sprint(i), figures)
	}
	row("mean", c.Mean)
	row("deviation", c.Deviation)
	_ = table.Flush()
	return strings.TrimSuffix(text.String(), "\n")
}

type outOfFold map[string]placed

type placed struct {
	parts  []data.Array
	places []int
}

func (r outOfFold) put(outputs map[string]data.Array, places []int) error {
	for name, a := range outputs {
		p := r[name]
		if len(p.parts) > 0 && (!slices.Equal(p.parts[0].Dims[1:], a.Dims[1:]) || p.parts[0].DType() != a.DType()) {
			return fmt.Errorf("output %q is %s%v, and in the first fold %s%v", name, a.DType(), a.Dims[1:], p.parts[0].DType(), p.parts[0].Dims[1:])
		}
		r[name] = placed{append(p.parts, a), append(p.places, places...)}
	}
	return nil
}

func (r outOfFold) inOrder(rows int) (map[string]data.Array, error) {
	all := map[string]data.Array{}
	for name, p := range r {
		if len(p.places) != rows {
			return nil, fmt.Errorf("output %q: %d of %d examples have it: give all models the same outputs", name, len(p.places), rows)
		}
		width, at := p.parts[0].Size()/p.parts[0].Len(), 0
		flat := reflect.MakeSlice(reflect.TypeOf(p.parts[0].Flat), rows*width, rows*width)
		for _, part := range p.parts {
			for i := range part.Len() {
				place := p.places[at]
				reflect.Copy(flat.Slice(place*width, (place+1)*width), reflect.ValueOf(part.Slice(i, i+1).Flat))
				at++
			}
		}
		all[name] = data.Array{Flat: flat.Interface(), Dims: append([]int{rows}, p.parts[0].Dims[1:]...)}
	}
	return all, nil
}
