package spmd

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

type groups struct {
	members []int64
	size    int64
}

func (g groups) String() string { return fmt.Sprint(g.size, g.members) }

func (in *instruction) groups() (lists [][]int64, err error) {
	sources := 0
	for _, f := range in.rest {
		var found [][]int64
		switch f.number {
		case fieldReplicaGroups:
			var one []int64
			if one, err = listIn(f, fieldReplicas); err == nil {
				if sources == 0 {
					sources = 1
				}
				lists = append(lists, one)
			}
		case fieldDeviceList:
			found, err = deviceList(f)
		case fieldIotaGroups:
			found, err = iotaGroups(f)
		case fieldMeshGroups:
			found, err = meshGroups(f)
		}
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			if sources++; sources > 1 && !slices.EqualFunc(lists, found, slices.Equal[[]int64]) {
				return nil, fmt.Errorf("its fields name different groups: %v and %v", lists, found)
			}
			lists = found
		}
	}
	for _, list := range lists {
		if len(list) == 0 {
			return nil, fmt.Errorf("a group of %v is empty", lists)
		}
	}
	return lists, nil
}

func listIn(message field, number protowire.Number) (list []int64, err error) {
	data, err := message.bytes()
	if err != nil {
		return nil, err
	}
	fields, err := fieldsOf(data)
	for _, f := range fields {
		if f.number == number && err == nil {
			list, err = f.appendTo(list)
		}
	}
	return list, err
}

func deviceList(message field) (lists [][]int64, err error) {
	data, err := message.bytes()
	if err != nil {
		return nil, err
	}
	fields, err := fieldsOf(data)
	for _, f := range fields {
		if err != nil {
			return nil, err
		}
		switch f.number {
		case fieldGroups:
			var one []int64
			one, err = listIn(f, fieldReplicas)
			lists = append(lists, one)
		case fieldListIota:
			// Older plugins write both forms.
			var found [][]int64
			if found, err = iotaGroups(f); err == nil && len(found) > 0 {
				if len(lists) > 0 && !slices.EqualFunc(lists, found, slices.Equal[[]int64]) {
					return nil, fmt.Errorf("its list of devices names different groups: %v and %v", lists, found)
				}
				lists = found
			}
		default:
			return nil, fmt.Errorf("the field %d of its list of devices is not supported", f.number)
		}
	}
	return lists, err
}

// most limits the memory that a broken module can take.
const most = 1 << 20

func iotaGroups(message field) ([][]int64, error) {
	reshape, err := listIn(message, fieldReshape)
	if err != nil {
		return nil, err
	}
	order, err := listIn(message, fieldTranspose)
	if err != nil {
		return nil, err
	}
	count, err := listIn(message, fieldGroupCount)
	if err != nil {
		return nil, err
	}
	size, err := listIn(message, fieldGroupSize)
	if err != nil {
		return nil, err
	}
	if len(reshape)+len(order)+len(count)+len(size) == 0 {
		return nil, nil
	}
	list, err := transposed(nil, reshape, order)
	if err != nil {
		return nil, err
	}
	if len(count) != 1 || len(size) != 1 || size[0] < 1 || count[0] < 1 || count[0] > most || size[0] > most || count[0]*size[0] != int64(len(list)) {
		return nil, fmt.Errorf("%v groups of %v do not have the %d partitions of the axes %v", count, size, len(list), reshape)
	}
	return slices.Collect(slices.Chunk(list, int(size[0]))), nil
}

// transposed reshapes list (nil: 0, 1, …), transposes and flattens it.
func transposed(list, axes, order []int64) ([]int64, error) {
	n := int64(1)
	for _, a := range axes {
		if a < 1 || a > most || n*a > most {
			return nil, fmt.Errorf("axes %v of partitions", axes)
		}
		n *= a
	}
	met := make([]bool, len(axes))
	for _, a := range order {
		if a < 0 || a >= int64(len(axes)) || met[a] {
			return nil, fmt.Errorf("the order %v of %d axes", order, len(axes))
		}
		met[a] = true
	}
	if len(order) != len(axes) || list != nil && int64(len(list)) != n {
		return nil, fmt.Errorf("the order %v of the axes %v, and %d partitions", order, axes, len(list))
	}
	strides := make([]int64, len(axes))
	stride := int64(1)
	for i, a := range slices.Backward(axes) {
		strides[i], stride = stride, stride*a
	}
	out := make([]int64, n)
	for i := range out {
		at, left := int64(0), int64(i)
		for _, a := range slices.Backward(order) {
			at, left = at+left%axes[a]*strides[a], left/axes[a]
		}
		if out[i] = at; list != nil {
			out[i] = list[at]
		}
	}
	return out, nil
}

func meshGroups(message field) ([][]int64, error) {
	data, err := message.bytes()
	if err != nil {
		return nil, err
	}
	fields, err := fieldsOf(data)
	if err != nil {
		return nil, err
	}
	var sizes, ids []int64
	var along []axisPart
	for _, f := range fields {
		switch f.number {
		case fieldMesh:
			if sizes, ids, err = mesh(f); err != nil {
				return nil, err
			}
		case fieldAxes:
			part, err := partOf(f)
			if err != nil {
				return nil, err
			}
			along = append(along, part)
		default:
			return nil, fmt.Errorf("the field %d of its groups of a mesh is not supported", f.number)
		}
	}
	if len(sizes) == 0 {
		return nil, nil
	}
	// Each axis becomes its named parts and those between.
	var axes, order, rest []int64
	place := make([]int64, len(along))
	for i, size := range sizes {
		var parts []int
		for k := range along {
			if along[k].axis == int64(i) {
				if along[k].size == 0 {
					along[k].before, along[k].size = 1, size
				}
				parts = append(parts, k)
			}
		}
		slices.SortFunc(parts, func(a, b int) int { return int(along[a].before - along[b].before) })
		done := int64(1)
		between := func(upTo int64) error {
			if upTo < done || upTo%done != 0 || size%upTo != 0 {
				return fmt.Errorf("a part of the axis %d of the mesh does not divide it", i)
			}
			if upTo > done {
				rest, axes = append(rest, int64(len(axes))), append(axes, upTo/done)
			}
			return nil
		}
		for _, k := range parts {
			if along[k].before < 1 || along[k].before > most || along[k].size < 1 || along[k].size > most {
				return nil, fmt.Errorf("a part of the axis %d of the mesh has no size", i)
			}
			if err := between(along[k].before); err != nil {
				return nil, err
			}
			place[k], axes = int64(len(axes)), append(axes, along[k].size)
			done = along[k].before * along[k].size
		}
		if err := between(size); err != nil {
			return nil, err
		}
	}
	group := int64(1)
	order = append(order, rest...)
	for k, part := range along {
		if part.axis < 0 || part.axis >= int64(len(sizes)) {
			return nil, fmt.Errorf("the mesh has no axis %d", part.axis)
		}
		order, group = append(order, place[k]), group*part.size
	}
	if len(ids) == 0 {
		ids = nil
	}
	list, err := transposed(ids, axes, order)
	if err != nil {
		return nil, err
	}
	return slices.Collect(slices.Chunk(list, int(group))), nil
}

// before is the product of the sizes left of the part; size 0 is the whole axis.
type axisPart struct{ axis, before, size int64 }

func mesh(message field) (sizes, ids []int64, err error) {
	data, err := message.bytes()
	if err != nil {
		return nil, nil, err
	}
	fields, err := fieldsOf(data)
	for _, f := range fields {
		if err != nil {
			return nil, nil, err
		}
		switch f.number {
		case fieldMeshAxes:
			var size []int64
			if size, err = listIn(f, fieldAxisSize); err == nil && (len(size) != 1 || size[0] < 1 || size[0] > most) {
				err = fmt.Errorf("an axis of its mesh has the size %v", size)
			}
			sizes = append(sizes, size...)
		case fieldMeshIDs:
			ids, err = f.appendTo(ids)
		}
	}
	return sizes, ids, err
}

func partOf(message field) (part axisPart, err error) {
	fields, err := fieldsOf(message.data)
	for _, f := range fields {
		if err != nil {
			return part, err
		}
		switch f.number {
		case fieldAxis:
			part.axis, err = f.number64()
		case fieldSubAxis:
			var before, size []int64
			if before, err = listIn(f, fieldPreSize); err == nil {
				size, err = listIn(f, fieldSubSize)
			}
			if err == nil && (len(before) != 1 || len(size) != 1) {
				err = fmt.Errorf("a part of an axis of its mesh has no size")
			}
			if err == nil {
				part.before, part.size = before[0], size[0]
			}
		}
	}
	return part, err
}
