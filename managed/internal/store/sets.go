package store

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/dtype"
)

// DataPrefix begins the graph parameters of resident fields.
const DataPrefix = "data:"

// Reside moves a set's fields to the devices once.
func (s *Store) Reside(set *data.Resident) (buffers []compute.Buffer, err error) {
	if set == nil {
		return nil, nil
	}
	if buffers, there := s.resident[set]; there {
		return buffers, nil
	}
	for _, f := range set.Fields() {
		t, err := TensorOf(f.Array)
		var b compute.Buffer
		if err == nil {
			b, err = s.strategy.Put(DataPrefix+f.Name, t)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("move field %q of the set, %s %v, to the device: %w", f.Name, f.Array.DType(), f.Array.Dims, err),
				s.strategy.Free(buffers...))
		}
		buffers = append(buffers, b)
	}
	s.resident[set] = buffers
	return buffers, nil
}

func DType(a data.Array) dtypes.DType {
	t, _ := dtype.Of(a.Flat)
	return dtypes.DType(t)
}

func TensorOf(a data.Array) (*Tensor, error) {
	t := tensors.FromShape(shapes.Make(DType(a), a.Dims...))
	return t, t.MutableFlatData(func(flat any) { reflect.Copy(reflect.ValueOf(flat), reflect.ValueOf(a.Flat)) })
}
