package report

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/metrics/plots"
)

const (
	repeats        = 5
	mostFeatures   = 100
	mostPermuted   = 50_000     // examples to predict
	mostElements   = 10_000_000 // of their inputs
	leastPermuted  = 50         // examples of a set
	importanceSeed = 1
)

type feature struct {
	name  string
	field int
	at    int // -1: the whole field
}

// drawImportance permutes each feature among examples, as scikit-learn's permutation_importance.
func (a *answers) drawImportance(ctx context.Context, d *draft) error {
	_, one, err := a.permuted(1)
	if err != nil {
		return err
	}
	features, size := a.features(one.Fields()), 0
	if len(features) < 2 {
		d.leaveOut("Importance", errors.New("the model has one input: features are columns of fields [examples, columns] of floats, or several fields"))
		return nil
	}
	for _, f := range one.Fields() {
		if slices.Contains(a.inputs, f.Name) {
			size += f.Array.Size()
		}
	}
	all := len(features)
	features = features[:min(all, mostFeatures)]
	rows, set, err := a.permuted(max(leastPermuted, min(mostPermuted, mostElements/size)/repeats/len(features)))
	if err != nil {
		return err
	}
	base, err := a.scoreOf(ctx, set.Fields(), rows)
	if err != nil {
		return err
	}
	var importances []plots.Importance
	orders := permutations(len(rows))
	for _, f := range features {
		var falls []float64
		for _, order := range orders {
			fields := slices.Clone(set.Fields())
			fields[f.field].Array = f.permute(fields[f.field].Array, order)
			score, err := a.scoreOf(ctx, fields, rows)
			if err != nil {
				return err
			}
			falls = append(falls, base-score)
		}
		i := plots.Importance{Name: f.name}
		for _, v := range falls {
			i.Mean += v / repeats
		}
		for _, v := range falls {
			i.Deviation += (v - i.Mean) * (v - i.Mean) / repeats
		}
		i.Deviation = math.Sqrt(i.Deviation)
		importances = append(importances, i)
	}
	caption := fmt.Sprintf("How far the %s (%.4g) falls when a feature is permuted among examples: mean ± standard deviation of %d permutations (seed %d) of ", a.scoreName, base, repeats, importanceSeed)
	if len(rows) < a.p.Len() {
		caption += fmt.Sprintf("%d of the %d examples, evenly spaced.", len(rows), a.p.Len())
	} else {
		caption += fmt.Sprintf("%d examples.", len(rows))
	}
	if all > len(features) {
		caption += fmt.Sprintf(" The first %d of %d features.", len(features), all)
	}
	d.draw(plots.Importances(importances...).Caption(caption))
	return nil
}

// permuted has evenly spaced examples with the fields that the user gave.
func (a *answers) permuted(most int) (rows []int, set *data.Set, err error) {
	n := a.p.Len()
	k := min(n, most)
	for i := range k {
		rows = append(rows, i*n/k)
	}
	set, err = a.only(rows)
	return rows, set, err
}

func (a *answers) only(rows []int) (*data.Set, error) {
	set, err := a.given.Gather(rows)
	if err == nil && set.Mapped() {
		set, err = data.Collect(set.Batches(min(256, len(rows)), data.Kept).All(), len(rows))
	}
	return set, err
}

func permutations(n int) (orders [][]int) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	random := rand.New(rand.NewPCG(importanceSeed, 0))
	for range repeats {
		random.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
		orders = append(orders, slices.Clone(order))
	}
	return orders
}

func (a *answers) scoreOf(ctx context.Context, fields []data.Field, rows []int) (float64, error) {
	set, err := data.New(fields...)
	if err != nil {
		return 0, err
	}
	p, err := a.model.Predict(ctx, set)
	if err != nil {
		return 0, err
	}
	return a.score(p, rows)
}

func (a *answers) features(fields []data.Field) (all []feature) {
	for i, f := range fields {
		dims := f.Array.Dims
		_, single := f.Array.Flat.([]float32)
		_, double := f.Array.Flat.([]float64)
		switch {
		case !slices.Contains(a.inputs, f.Name):
		case !single && !double, len(dims) != 2 && len(dims) != 3, len(dims) == 2 && dims[1] < 2, len(dims) == 3 && dims[2] < 2:
			all = append(all, feature{f.Name, i, -1})
		default:
			for k, name := range columnNames(f) {
				all = append(all, feature{name, i, k})
			}
		}
	}
	return all
}

func (f feature) permute(a data.Array, order []int) data.Array {
	if f.at < 0 {
		return a.Gather(order)
	}
	from := a.Gather(order)
	width := a.Dims[len(a.Dims)-1]
	to := a.Gather(identity(len(order)))
	switch flat := to.Flat.(type) {
	case []float32:
		mix(flat, from.Flat.([]float32), f.at, width)
	case []float64:
		mix(flat, from.Flat.([]float64), f.at, width)
	}
	return to
}

func identity(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func mix[F float32 | float64](to, from []F, at, width int) {
	for i := at; i < len(to); i += width {
		to[i] = from[i]
	}
}
