package spmd

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// Groups are read from each place where versions of XLA write them.
func TestGroups(t *testing.T) {
	iota8 := func(groups, size int64, axes, order []int64) []byte {
		list := appendNumber(appendNumber(nil, fieldGroupCount, groups), fieldGroupSize, size)
		return appendNumbers(appendNumbers(list, fieldReshape, axes), fieldTranspose, order)
	}
	axis := func(size int64) []byte {
		return appendBytes(nil, fieldMeshAxes, appendNumber(nil, fieldAxisSize, size))
	}
	along := func(axis int64, part ...int64) []byte {
		ref := appendNumber(nil, fieldAxis, axis)
		if len(part) == 2 {
			ref = appendBytes(ref, fieldSubAxis, appendNumber(appendNumber(nil, fieldPreSize, part[0]), fieldSubSize, part[1]))
		}
		return appendBytes(nil, fieldAxes, ref)
	}
	onMesh := func(mesh []byte, axes ...[]byte) []byte {
		return appendBytes(nil, fieldMeshGroups, append(appendBytes(nil, fieldMesh, mesh), bytes.Join(axes, nil)...))
	}
	listed := func(lists ...[]int64) (out []byte) {
		for _, list := range lists {
			out = appendBytes(out, fieldReplicaGroups, appendNumbers(nil, fieldReplicas, list))
		}
		return out
	}
	twoByFour := append(axis(2), axis(4)...)
	for name, row := range map[string]struct {
		fields []byte
		groups [][]int64
		err    string
	}{
		"none":                  {nil, nil, ""},
		"lists":                 {listed([]int64{0, 2}, []int64{3, 1}), [][]int64{{0, 2}, {3, 1}}, ""},
		"a list of devices":     {members([]int64{1, 0}, []int64{2, 3}), [][]int64{{1, 0}, {2, 3}}, ""},
		"an older iota":         {appendBytes(nil, fieldDeviceList, appendBytes(nil, fieldListIota, iota8(2, 4, []int64{8}, []int64{0}))), [][]int64{{0, 1, 2, 3}, {4, 5, 6, 7}}, ""},
		"iota":                  {appendBytes(nil, fieldIotaGroups, iota8(4, 2, []int64{2, 4}, []int64{1, 0})), [][]int64{{0, 4}, {1, 5}, {2, 6}, {3, 7}}, ""},
		"axes of a mesh":        {onMesh(twoByFour, along(0)), [][]int64{{0, 4}, {1, 5}, {2, 6}, {3, 7}}, ""},
		"both axes of a mesh":   {onMesh(twoByFour, along(1), along(0)), [][]int64{{0, 4, 1, 5, 2, 6, 3, 7}}, ""},
		"the first half":        {onMesh(twoByFour, along(1, 1, 2)), [][]int64{{0, 2}, {1, 3}, {4, 6}, {5, 7}}, ""},
		"the second half":       {onMesh(twoByFour, along(1, 2, 2)), [][]int64{{0, 1}, {2, 3}, {4, 5}, {6, 7}}, ""},
		"a mesh in an order":    {onMesh(append(axis(4), appendNumbers(nil, fieldMeshIDs, []int64{3, 2, 1, 0})...), along(0)), [][]int64{{3, 2, 1, 0}}, ""},
		"two that say the same": {append(listed([]int64{0, 1}), members([]int64{0, 1})...), [][]int64{{0, 1}}, ""},
		"two that do not":       {append(listed([]int64{0, 1}), members([]int64{1, 0})...), nil, "its fields name different groups: [[0 1]] and [[1 0]]"},
		"an empty one":          {listed([]int64{0, 1}, nil), nil, "a group of [[0 1] []] is empty"},
		"iota that does not fit": {appendBytes(nil, fieldIotaGroups, iota8(4, 3, []int64{8}, []int64{0})), nil,
			"[4] groups of [3] do not have the 8 partitions of the axes [8]"},
		"an order that is none": {appendBytes(nil, fieldIotaGroups, iota8(4, 2, []int64{2, 4}, []int64{1, 1})), nil, "the order [1 1] of 2 axes"},
		"no such axis":          {onMesh(twoByFour, along(2)), nil, "the mesh has no axis 2"},
		"a part too large":      {onMesh(twoByFour, along(1, 3, 2)), nil, "a part of the axis 1 of the mesh does not divide it"},
		"a mesh too large":      {onMesh(append(axis(1<<20), axis(1<<20)...), along(0)), nil, "axes [1048576 1048576] of partitions"},
		"another field":         {appendBytes(nil, fieldDeviceList, appendBytes(nil, 9, "x")), nil, "the field 9 of its list of devices is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			fields, err := fieldsOf(row.fields)
			require.NoError(t, err)
			groups, err := (&instruction{rest: fields}).groups()
			if row.err != "" {
				require.EqualError(t, err, row.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.groups, groups)
		})
	}
}
