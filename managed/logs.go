package managed

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed/internal/store"
)

type output struct{ store.Remote }

func (o *output) Any() (any, error) {
	t, err := o.Tensor()
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (o *output) Float() (float64, error) {
	t, err := o.Tensor()
	if err != nil {
		return 0, err
	}
	return 0, fmt.Errorf("managed: %s is not a number; its Any returns the tensor", t.Shape())
}

// Array waits for the step and copies an array reported by [Builder.Output]. name is as in [loop.Logs.Get].
func Array(logs loop.Logs, name string) (data.Array, error) {
	e, err := logs.Get(name)
	if err != nil {
		return data.Array{}, fmt.Errorf("managed: array: %w", err)
	}
	if e.IsNumber() {
		return data.Array{}, fmt.Errorf("managed: array: %s is a single number: Logs.Float reads it", e.Path())
	}
	v, err := e.Any()
	if err != nil {
		return data.Array{}, err
	}
	t, ok := v.(*tensors.Tensor)
	if !ok {
		return data.Array{}, fmt.Errorf("managed: array: %s is a %T, expected an output of Builder.Output", e.Path(), v)
	}
	a, err := ArrayOf(t)
	if err != nil {
		return data.Array{}, fmt.Errorf("managed: array: %s, %w", e.Path(), err)
	}
	return a, nil
}

// ArrayOf copies a tensor, like a result of [State.Value].
func ArrayOf(t *tensors.Tensor) (data.Array, error) {
	a := data.Array{Dims: slices.Clone(t.Shape().Dimensions)}
	err := t.ConstFlatData(func(flat any) {
		v := reflect.ValueOf(flat)
		a.Flat = reflect.AppendSlice(reflect.Zero(v.Type()), v).Interface()
	})
	if err == nil {
		err = a.Check()
	}
	if err != nil {
		return data.Array{}, fmt.Errorf("%s: %w\n  for a dtype that Go does not have, convert the node in the graph, by graph.ConvertDType", t.Shape(), err)
	}
	return a, nil
}

type scalars struct {
	store.Remote
	all []scalar
}

type scalar struct {
	of *scalars
	at int
}

func (v *scalar) Float() (float64, error) {
	flat, err := v.of.Flat()
	if err != nil {
		return 0, err
	}
	return float64(flat.([]float32)[v.at]), nil
}

func newLogs(layout []logged, steps int) (*scalars, []loop.Logs) {
	n := len(layout)
	p := &scalars{all: make([]scalar, steps*n)}
	entries, logs := make([]loop.Entry, steps*n), make([]loop.Logs, steps)
	for i := range entries {
		p.all[i] = scalar{p, i}
		entries[i] = loop.Entry{Collection: layout[i%n].collection, Name: layout[i%n].name, Value: &p.all[i]}
	}
	for i := range logs {
		logs[i].SetAll(entries[i*n : (i+1)*n : (i+1)*n])
	}
	return p, logs
}
