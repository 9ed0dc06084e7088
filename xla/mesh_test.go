package xla_test

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

func TestMesh_Part(t *testing.T) {
	mesh := xla.Mesh{Axes: []xla.MeshAxis{{Name: "data", Size: 4}, {Name: "model", Size: 2}}}
	for _, row := range []struct {
		name   string
		split  xla.Split
		part   []int
		start5 []int // of the device 5: 2 on the data axis, 1 on the model axis
		err    string
	}{
		{"whole", nil, []int{8, 6}, []int{0, 0}, ""},
		{"rows", xla.Split{{"data"}}, []int{2, 6}, []int{4, 0}, ""},
		{"columns", xla.Split{nil, {"model"}}, []int{8, 3}, []int{0, 3}, ""},
		{"both", xla.Split{{"data"}, {"model"}}, []int{2, 3}, []int{4, 3}, ""},
		{"one axis along both", xla.Split{{"data", "model"}}, []int{1, 6}, []int{5, 0}, ""},
		{"the other way round", xla.Split{{"model", "data"}}, []int{1, 6}, []int{6, 0}, ""},
		{"not divisible", xla.Split{nil, {"data"}}, nil, nil, "xla: split [[] [data]] of (Float32)[8, 6]: axis 1 over 4 devices: the axis cannot be divided into equal parts"},
		{"no such axis", xla.Split{{"x"}}, nil, nil, "xla: split [[x]] of (Float32)[8, 6]: the mesh has no axis \"x\""},
		{"twice", xla.Split{{"model"}, {"model"}}, nil, nil, "xla: split [[model] [model]] of (Float32)[8, 6] names the axis \"model\" of the mesh twice"},
		{"too many axes", xla.Split{nil, nil, {"data"}}, nil, nil, "xla: split [[] [] [data]] has more axes than (Float32)[8, 6]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			part, err := mesh.Part(shapes.Make(dtypes.Float32, 8, 6), row.split)
			if row.err != "" {
				require.EqualError(t, err, row.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.part, part.Dimensions)
			require.Equal(t, row.start5, mesh.Start(5, part, row.split))
		})
	}
}

// The parts of all devices cover an array, each element once per device with the same part.
func TestMesh_law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mesh := xla.Mesh{}
		names := []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "axes")]
		for _, name := range names {
			mesh.Axes = append(mesh.Axes, xla.MeshAxis{Name: name, Size: rapid.IntRange(1, 3).Draw(t, "size")})
		}
		split, dims := make(xla.Split, 2), []int{1, 1}
		for _, a := range mesh.Axes {
			if axis := rapid.IntRange(0, 2).Draw(t, "cuts"); axis < 2 {
				split[axis] = append(split[axis], a.Name)
				dims[axis] *= a.Size
			}
		}
		copies := mesh.Devices() / (dims[0] * dims[1])
		for i := range dims {
			dims[i] *= rapid.IntRange(1, 3).Draw(t, "length")
		}
		part, err := mesh.Part(shapes.Make(dtypes.Int32, dims...), split)
		require.NoError(t, err)
		covered := make([]int, dims[0]*dims[1])
		for d := range mesh.Devices() {
			start := mesh.Start(d, part, split)
			for i := range part.Dimensions[0] {
				for j := range part.Dimensions[1] {
					covered[(start[0]+i)*dims[1]+start[1]+j]++
				}
			}
		}
		for _, n := range covered {
			require.Equal(t, copies, n)
		}
	})
}

func TestCompileOver_refuses(t *testing.T) {
	r := plugintest.CPU(t)
	for _, row := range []struct {
		mesh xla.Mesh
		err  string
	}{
		{xla.Mesh{Axes: []xla.MeshAxis{{"data", 2}}}, `xla: compile f: the mesh has 2 devices, the runtime 1; on the CPU, open it with ClientOption("cpu_device_count", 2)`},
		{xla.Mesh{Axes: []xla.MeshAxis{{"data", 0}}}, `xla: compile f: axis "data" of the mesh has 0 devices, expected 1 at least`},
		{xla.Mesh{Axes: []xla.MeshAxis{{"", 1}}}, `xla: compile f: axis 0 of the mesh has no name`},
		{xla.Mesh{Axes: []xla.MeshAxis{{"a", 1}, {"a", 1}}}, `xla: compile f: the mesh has two axes "a"`},
	} {
		_, err := r.CompileOver(xla.Placement{Mesh: row.mesh}, "f", func(g *graph.Graph) xla.Built {
			return xla.Built{Outputs: []*graph.Node{graph.Scalar(g, dtypes.Float32, 1)}}
		})
		require.EqualError(t, err, row.err)
	}
}
