package tables

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/data"
)

// An earlier lazo, which would answer in scaled units, refuses these kinds.
const (
	asScaled = "scaled number label"
	asLog    = "log number label"
)

// Target is the scaling of a column of labels: a model learns (f(label) - Shift) / Scale, where f is log(1 + label) if
// Log is set, else the label.
type Target struct {
	Shift, Scale float64
	Log          bool
}

// Targets returns the scalings of a field's columns of labels, or nil if they are not scaled.
func (p *Preparation) Targets(field string) (targets []Target) {
	if p == nil {
		return nil
	}
	for _, c := range p.in(field) {
		if as := c.of().As; as == asScaled || as == asLog {
			by := c.(*numberLabel).linear
			targets = append(targets, Target{by.Shift, by.Scale, as == asLog})
		}
	}
	return targets
}

// Restore returns the scaled labels of [Preparation.Apply] to their units, for data.Set.Map and data.Map.
func (p *Preparation) Restore(batch data.Batch) (data.Batch, error) {
	b, err := batch.OnHost()
	if err != nil {
		return b, fmt.Errorf("tables: preparation: restore: %w", err)
	}
	b.Fields = slices.Clone(b.Fields)
	for k, f := range b.Fields {
		targets := p.Targets(f.Name)
		if targets == nil {
			continue
		}
		scaled, ok := f.Array.Flat.([]float32)
		if width := f.Array.Size() / max(1, f.Array.Len()); !ok || width%len(targets) != 0 {
			return b, fmt.Errorf("tables: preparation: restore: field %q is %s %v, expected float32 with %d numbers for each example", f.Name, f.Array.DType(), f.Array.Dims, len(targets))
		}
		labels := make([]float32, len(scaled))
		for i, v := range scaled {
			t := targets[i%len(targets)]
			label := float64(v)*t.Scale + t.Shift
			if t.Log {
				label = math.Expm1(label)
			}
			labels[i] = float32(label)
		}
		b.Fields[k].Array = data.Array{Flat: labels, Dims: f.Array.Dims}
	}
	return b, nil
}

func (l Labels) checkScale() error {
	switch {
	case l.Scale < noScale || l.Scale > Robust:
		return fmt.Errorf("the Scale is %d: expected Standard, MinMax or Robust", l.Scale)
	case (l.Scale != noScale || l.Log) && !l.Numbers:
		return errors.New("Scale and Log are for labels that are numbers: set Numbers")
	}
	return nil
}

func (l Labels) fitTarget(of source, column data.Array) (prepared, error) {
	values, err := numbersOf(column)
	if err != nil {
		return nil, err
	}
	of.As = asScaled
	if l.Log {
		of.As = asLog
	}
	for i, v := range values {
		if math.IsNaN(v) {
			return nil, missingLabel(i)
		}
		if values[i], err = transformed(of.As, v); err != nil {
			return nil, rowError(i, "%w", err)
		}
	}
	by, err := fitLinear(values, l.Scale)
	return &numberLabel{of, by}, err
}

func transformed(as string, v float64) (float64, error) {
	switch {
	case as != asLog:
		return v, nil
	case v <= -1:
		return v, fmt.Errorf("%v has no logarithm of 1 + label: expected numbers above -1, or Labels without Log", v)
	}
	return math.Log1p(v), nil
}
