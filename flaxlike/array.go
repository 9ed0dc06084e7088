package flaxlike

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed"
)

// arrayOf copies a tensor.
func arrayOf(t *managed.Tensor) (a data.Array, err error) {
	outer := t.ConstFlatData(func(flat any) {
		v := reflect.ValueOf(flat)
		a = data.Array{Flat: reflect.AppendSlice(reflect.Zero(v.Type()), v).Interface(), Dims: slices.Clone(t.Shape().Dimensions)}
	})
	if outer != nil {
		return a, outer
	}
	if err := a.Check(); err != nil {
		return a, fmt.Errorf("%s: no such type on the host, make it another one with graph.ConvertDType: %w", t.Shape(), err)
	}
	return a, nil
}

// join puts arrays of one type one behind the other along the first axis.
func join(parts []data.Array) data.Array {
	all := reflect.ValueOf(parts[0].Flat)
	all = all.Slice3(0, all.Len(), all.Len())
	dims := slices.Clone(parts[0].Dims)
	for _, p := range parts[1:] {
		all = reflect.AppendSlice(all, reflect.ValueOf(p.Flat))
		dims[0] += p.Dims[0]
	}
	return data.Array{Flat: all.Interface(), Dims: dims}
}

func element(flat any, i int) any { return reflect.ValueOf(flat).Index(i).Interface() }
