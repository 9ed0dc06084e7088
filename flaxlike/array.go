package flaxlike

import (
	"reflect"
	"slices"

	"github.com/lazo-ml/lazo/data"
)

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
