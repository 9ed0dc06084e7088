package xla

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
)

// Mesh is a grid of the first devices with named axes, the last varying fastest. The zero Mesh is the first device.
type Mesh struct{ Axes []MeshAxis }

// MeshAxis is a named axis, like "data" or "model".
type MeshAxis struct {
	Name string
	Size int
}

// Split lists, for each axis of an array, the mesh axes that shard it, coarsest first. Other axes are whole; nil
// replicates the array.
type Split [][]string

// Placement is where a program runs and how its inputs are sharded.
type Placement struct {
	Mesh Mesh
	// Split shards parameters; nil replicates all. An output is sharded like the parameter that it replaces, or
	// replicated.
	Split func(parameter string, shape shapes.Shape) Split
}

func (p Placement) split(parameter string, shape shapes.Shape) Split {
	if p.Split == nil {
		return nil
	}
	return p.Split(parameter, shape)
}

// Devices is the number of devices.
func (m Mesh) Devices() int {
	n := 1
	for _, a := range m.Axes {
		n *= a.Size
	}
	return n
}

func (m Mesh) check(devices int) error {
	for i, a := range m.Axes {
		switch {
		case a.Name == "":
			return fmt.Errorf("axis %d of the mesh has no name", i)
		case a.Size < 1:
			return fmt.Errorf("axis %q of the mesh has %d devices, expected 1 at least", a.Name, a.Size)
		case slices.ContainsFunc(m.Axes[:i], func(other MeshAxis) bool { return other.Name == a.Name }):
			return fmt.Errorf("the mesh has two axes %q", a.Name)
		}
	}
	if n := m.Devices(); n > devices {
		return fmt.Errorf("the mesh has %d devices, the runtime %d; on the CPU, open it with ClientOption(%q, %d)", n, devices, cpuDevices, n)
	}
	return nil
}

func (m Mesh) size(axis string) (int, error) {
	for _, a := range m.Axes {
		if a.Name == axis {
			return a.Size, nil
		}
	}
	return 0, fmt.Errorf("the mesh has no axis %q", axis)
}

// ErrUneven: the axis cannot be divided equally.
var ErrUneven = errors.New("the axis cannot be divided into equal parts")

// Part is the shape of a device's part of an array.
func (m Mesh) Part(shape shapes.Shape, split Split) (shapes.Shape, error) {
	if len(split) > shape.Rank() {
		return shapes.Invalid(), fmt.Errorf("xla: split %v has more axes than %s", split, shape)
	}
	part := shape.Clone()
	used := map[string]bool{}
	for i, names := range split {
		for _, name := range names {
			n, err := m.size(name)
			if err != nil {
				return shapes.Invalid(), fmt.Errorf("xla: split %v of %s: %w", split, shape, err)
			}
			if used[name] {
				return shapes.Invalid(), fmt.Errorf("xla: split %v of %s names the axis %q of the mesh twice", split, shape, name)
			}
			used[name] = true
			if part.Dimensions[i]%n != 0 {
				return shapes.Invalid(), fmt.Errorf("xla: split %v of %s: axis %d over %d devices: %w", split, shape, i, n, ErrUneven)
			}
			part.Dimensions[i] /= n
		}
	}
	return part, nil
}

// Start is the index where a device's part begins.
func (m Mesh) Start(device int, part shapes.Shape, split Split) []int {
	start := make([]int, part.Rank())
	for i, names := range split {
		at := 0
		for _, name := range names {
			size, place := m.along(device, name)
			at = at*size + place
		}
		start[i] = at * part.Dimensions[i]
	}
	return start
}

func (m Mesh) along(device int, axis string) (size, place int) {
	for _, a := range slices.Backward(m.Axes) {
		if a.Name == axis {
			return a.Size, device % a.Size
		}
		device /= a.Size
	}
	return 1, 0
}

const meshName = "mesh"

func (m Mesh) gomlx() compute.Mesh {
	mesh := compute.Mesh{Name: meshName}
	for _, a := range m.Axes {
		mesh.AxesNames, mesh.AxesSizes = append(mesh.AxesNames, a.Name), append(mesh.AxesSizes, a.Size)
	}
	return mesh
}

// gomlx specifies every axis: Shardy would choose for others.
func (s Split) gomlx(rank int) *compute.ShardingSpec {
	spec := &compute.ShardingSpec{Mesh: meshName, Axes: make([][]string, rank)}
	copy(spec.Axes, s)
	return spec
}
