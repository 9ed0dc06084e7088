package managed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/packs"
)

func (d *definition) namesOf(v *model.Variable) []string {
	if names := packs.Names(d.store, v.Path()); names != nil {
		return names
	}
	return []string{v.Path()}
}

// uses has of a pack the trained parameters' scalars.
func (d *definition) uses(variables, trained []*model.Variable) []string {
	names, parameters := []string{}, paths(trained)
	var whole []*model.Variable
	for _, v := range variables {
		packed := packs.Names(d.store, v.Path())
		if packed == nil {
			whole = append(whole, v)
		}
		for _, name := range packed {
			if owner(name, parameters) != "" {
				names = append(names, name)
			}
		}
	}
	return slices.Sorted(slices.Values(append(names, paths(whole)...)))
}

func elementOf(pack *tensors.Tensor, element int) (*tensors.Tensor, error) {
	all, err := tensors.CopyFlatData[int64](pack)
	if err != nil {
		return nil, err
	}
	return tensors.FromScalar(all[element]), nil
}

func setElement(pack *tensors.Tensor, element int, to *tensors.Tensor) error {
	return pack.MutableFlatData(func(flat any) { flat.([]int64)[element] = tensors.ToScalar[int64](to) })
}

// savedScalar also finds an older version's count.
func (s *State) savedScalar(r *restored, path string, dtype dtypes.DType) (value int64, name string, found bool, err error) {
	if name = path; r.from != nil {
		name = r.from(path)
	}
	t := r.tensors[r.older(name)]
	switch {
	case t != nil && (!t.IsScalar() || !t.DType().IsInt()):
		return 0, name, false, fmt.Errorf("%s was saved as %s, expected %s", name, t.Shape(), shapes.Make(dtype))
	case t != nil && r.late[t] != nil:
		t, err = r.late.CopyOf(t)
	case t == nil:
		t, err = s.inherited(r, path, shapes.Make(dtype))
	}
	if t == nil || err != nil {
		return 0, name, false, err
	}
	return shapes.CastAsDType(t.Value(), dtypes.Int64).(int64), name, true, nil
}

// packInto: missing scalars are 0, in lacks.
func (s *State) packInto(r *restored, v *model.Variable, names []string) error {
	value := make([]int64, len(names))
	var lacks, given []string
	for i, path := range names {
		saved, name, found, err := s.savedScalar(r, path, v.DType())
		switch {
		case err != nil:
			return err
		case found:
			value[i], given = saved, append(given, name)
		case name != "":
			lacks = append(lacks, path)
		}
	}
	r.lacks[v] = lacks
	if r.from != nil && len(given) == 0 && len(lacks) == 0 {
		r.ask(v, "")
		return nil
	}
	r.ask(v, v.Path())
	if len(given) == 0 {
		return nil
	}
	r.tensors, r.origins = maps.Clone(r.tensors), maps.Clone(r.origins)
	before := len(r.tensors)
	for _, name := range given {
		name = r.older(name)
		if o, ok := r.origins[name]; ok {
			r.origins[v.Path()] = o
		}
		if r.from == nil {
			delete(r.tensors, name)
		}
	}
	r.tensors[v.Path()] = tensors.FromValue(value)
	if slices.ContainsFunc(value, func(n int64) bool { return n != value[0] }) {
		packs.SetApart(s.model.store, v.Path())
	}
	r.all += len(r.tensors) - before
	return nil
}

func (s *State) writeElement(at, element int, spare *[]byte) func(io.Writer) error {
	now, buffer, shape := s.values.Pin(at), s.values.Buffer(at), s.values.Shape(at)
	return func(w io.Writer) error {
		var all bytes.Buffer
		err := errors.Join(now.Write(&all, buffer, int(shape.ByteSize()), spare), now.Release())
		if err != nil {
			return err
		}
		each := shape.DType.Size()
		_, err = w.Write(all.Bytes()[element*each:][:each])
		return err
	}
}
