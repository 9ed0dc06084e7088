package managed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/packs"
)

// namesOf are the full names under which checkpoints and callers know a variable: its own, or those of the scalars that
// it packs.
func (d *definition) namesOf(v *model.Variable) []string {
	if names := packs.Names(d.store, v); names != nil {
		return names
	}
	return []string{v.Path()}
}

// uses are the full names of variables that a step uses, sorted. Of scalars in a pack they are those of the parameters
// that it trains.
func (d *definition) uses(variables, trained []*model.Variable) []string {
	names, parameters := []string{}, paths(trained)
	var whole []*model.Variable
	for _, v := range variables {
		packed := packs.Names(d.store, v)
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

// elementOf is a scalar of a pack.
func elementOf(pack *tensors.Tensor, element int) (*tensors.Tensor, error) {
	all, err := tensors.CopyFlatData[int64](pack)
	if err != nil {
		return nil, err
	}
	return tensors.FromScalar(all[element]), nil
}

// setElement sets a scalar of a pack.
func setElement(pack *tensors.Tensor, element int, to *tensors.Tensor) error {
	return pack.MutableFlatData(func(flat any) { flat.([]int64)[element] = tensors.ToScalar[int64](to) })
}

// packInto makes the value of a pack of those that were saved for its scalars, or of what older versions counted. A
// scalar of which there is neither is 0, and is noted in lacks.
func (s *State) packInto(r *restored, v *model.Variable, names []string) error {
	value := make([]int64, len(names))
	var lacks, given []string
	for i, path := range names {
		name := path
		if r.from != nil {
			name = r.from(path)
		}
		t := r.tensors[r.older(name)]
		var err error
		switch {
		case t != nil && (!t.IsScalar() || !t.DType().IsInt()):
			return fmt.Errorf("%s was saved as %s, expected %s", name, t.Shape(), shapes.Make(v.DType()))
		case t != nil && r.late[t] != nil:
			t, err = r.late.CopyOf(t)
		case t == nil:
			t, err = s.inherited(r, path, shapes.Make(v.DType()))
		}
		if err != nil {
			return err
		}
		if t == nil {
			if name != "" {
				lacks = append(lacks, path)
			}
			continue
		}
		value[i] = shapes.CastAsDType(t.Value(), v.DType()).(int64)
		given = append(given, name)
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
	r.all += len(r.tensors) - before
	return nil
}

// writeElement returns what writes a scalar of the pack at a place into a checkpoint, as it is in this moment.
func (s *State) writeElement(at, element int, spare *[]byte) func(io.Writer) error {
	now, buffer, shape := s.values.Pin(at), s.values.Buffer(at), s.values.Shape(at)
	return func(w io.Writer) error {
		var all bytes.Buffer
		err := errors.Join(now.Write(&all, buffer, int(shape.ByteSize()), spare), now.Release())
		if err != nil {
			return err
		}
		each := int(shape.DType.Memory())
		_, err = w.Write(all.Bytes()[element*each:][:each])
		return err
	}
}
