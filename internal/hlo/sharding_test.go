package hlo_test

import (
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// Errors of functions other than operations.
func TestWrongBuilder(t *testing.T) {
	mesh := compute.Mesh{Name: "m", AxesNames: []string{"a"}, AxesSizes: []int{2}}
	for _, row := range []struct {
		name, want string
		do         func(o operands) error
	}{
		{"no outputs", "there are no outputs", func(o operands) error { _, err := o.Finish(nil); return err }},
		{"nil output", "not of this builder", func(o operands) error { _, err := o.Finish([]compute.Value{nil}); return err }},
		{"shardings", "1 outputs and 2 shardings", func(o operands) error {
			_, err := o.Finish([]compute.Value{o.f}, nil, nil)
			return err
		}},
		{"a closure's sharding", "hlo: return of a closure: output 0 of a closure has a sharding", func(o operands) error {
			c, _ := o.Closure()
			return c.Return([]compute.Value{o.f}, []*compute.ShardingSpec{{Mesh: "m"}})
		}},
		{"returning twice", `hlo: return of function "main": function "main" has returned already`, func(o operands) error {
			require.NoError(o.t, o.Return([]compute.Value{o.f}, nil))
			return o.Return([]compute.Value{o.f}, nil)
		}},
		{"compiling what has not returned", "main has not returned: call its Return first", func(o operands) error {
			_, err := o.Compile()
			return err
		}},
		{"a function's name twice", `new function "f": a function of this name already exists`, func(o operands) error {
			named1(o, "f")
			_, err := o.NewFunction("f")
			return err
		}},
		{"a function called main", "expected its own name", func(o operands) error {
			_, err := o.NewFunction("main")
			return err
		}},
		{"nothing compiles", "without a function that compiles", func(operands) error {
			b := programOf(hlo.New("none", nil))
			x, err := b.Constant([]bool{true})
			require.NoError(t, err)
			_, err = b.Finish([]compute.Value{x})
			return err
		}},
		{"in place: no parameter", "there are 9 parameters", func(o operands) error { return o.InPlace(0, 9) }},
		{"in place: output twice", "it goes over parameter 1 already", func(o operands) error { _ = o.InPlace(0, 1); return o.InPlace(0, 2) }},
		{"in place: parameter twice", "output 0 goes there already", func(o operands) error { _ = o.InPlace(0, 1); return o.InPlace(1, 1) }},
		{"in place: shapes", "expected the same shape", func(o operands) error {
			_ = o.InPlace(0, 1)
			_, err := o.Finish([]compute.Value{o.f})
			return err
		}},
		{"in place: no output", "output 3 of 1", func(o operands) error {
			_ = o.InPlace(3, 1)
			_, err := o.Finish([]compute.Value{o.f})
			return err
		}},
		{"replicas", "expected 1 at least", func(o operands) error { return o.DistributedSPMD(0) }},
		{"replicas twice", "chosen already", func(o operands) error { _ = o.DistributedSPMD(2); return o.DistributedSPMD(2) }},
		{"no mesh", "no mesh given", func(o operands) error { return o.DistributedAutoSharding() }},
		{"mesh without name", "no name", func(o operands) error { return o.DistributedAutoSharding(compute.Mesh{}) }},
		{"mesh without axes", "empty", func(o operands) error { return o.DistributedAutoSharding(compute.Mesh{Name: "m"}) }},
		{"mesh of 0", "1 at least", func(o operands) error {
			return o.DistributedAutoSharding(compute.Mesh{Name: "m", AxesNames: []string{"a"}, AxesSizes: []int{0}})
		}},
		{"two meshes of one name", "two of this name", func(o operands) error { return o.DistributedAutoSharding(mesh, mesh) }},
		{"logical devices", "devices must", func(o operands) error {
			m := mesh
			m.LogicalDeviceAssignment = []int{0, 7}
			return o.DistributedAutoSharding(m)
		}},
		{"sharding of an unknown axis", `"b"`, func(o operands) error {
			_ = o.DistributedAutoSharding(mesh)
			_, err := o.Parameter("x", shapes.Make(dtypes.Bool, 2), &compute.ShardingSpec{Mesh: "m", Axes: [][]string{{"b"}}})
			return err
		}},
		{"sharding twice over an axis", "twice", func(o operands) error {
			_ = o.DistributedAutoSharding(mesh)
			_, err := o.Parameter("x", shapes.Make(dtypes.Bool, 2, 2), &compute.ShardingSpec{Mesh: "m", Axes: [][]string{{"a"}, {"a"}}})
			return err
		}},
		{"unequal parts", "not equal", func(o operands) error {
			_ = o.DistributedAutoSharding(mesh)
			_, err := o.Parameter("x", shapes.Make(dtypes.Bool, 3), &compute.ShardingSpec{Mesh: "m", Axes: [][]string{{"a"}}})
			return err
		}},
		{"too many devices", "got 2 devices", func(o operands) error { return o.DeviceAssignment(0, 1) }},
		{"a device twice", "different ones", func(o operands) error { _ = o.DistributedSPMD(2); return o.DeviceAssignment(1, 1) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := row.do(newOperands(t))
			require.ErrorContains(t, err, row.want)
			require.True(t, strings.HasPrefix(err.Error(), "hlo: "), err)
		})
	}
}
