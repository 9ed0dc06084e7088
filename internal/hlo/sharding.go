package hlo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/types/shardy"
)

func (b *Builder) undecided() error {
	switch {
	case b.compiled:
		return fmt.Errorf("builder %q: %w", b.name, ErrCompiled)
	case b.devices.Count() > 1 || b.devices.Shardy():
		return errors.New("the builder's devices were chosen already")
	case b.devices.Assignment != nil:
		return errors.New("devices were assigned already; choose how many first")
	}
	return nil
}

func (b *Builder) DistributedSPMD(numDevices int) error {
	err := b.undecided()
	if err == nil && numDevices < 1 {
		err = fmt.Errorf("%d devices, expected 1 at least", numDevices)
	}
	if err != nil {
		return fmt.Errorf("hlo: distributed SPMD: %w", err)
	}
	b.devices.Replicas = numDevices
	return nil
}

// DistributedAutoSharding makes Shardy partition the program over the meshes. Call it before adding parameters with
// shardings.
func (b *Builder) DistributedAutoSharding(meshes ...compute.Mesh) error {
	err := b.undecided()
	if err == nil && len(meshes) == 0 {
		err = errors.New("no mesh given, expected one at least")
	}
	if err != nil {
		return fmt.Errorf("hlo: distributed auto-sharding: %w", err)
	}
	made, devices := make([]*shardy.DeviceMesh, 0, len(meshes)), 1
	for _, mesh := range meshes {
		m, err := deviceMesh(mesh)
		if err == nil && slices.ContainsFunc(made, func(other *shardy.DeviceMesh) bool { return other.Name() == mesh.Name }) {
			err = errors.New("there are two of this name")
		}
		if err != nil {
			return fmt.Errorf("hlo: distributed auto-sharding: mesh %q: %w", mesh.Name, err)
		}
		made, devices = append(made, m), max(devices, m.NumDevices())
	}
	b.meshes, b.devices.Partitions = made, devices
	return nil
}

func deviceMesh(mesh compute.Mesh) (*shardy.DeviceMesh, error) {
	if mesh.Name == "" {
		return nil, errors.New("it has no name")
	}
	for _, size := range mesh.AxesSizes {
		if size < 1 {
			return nil, fmt.Errorf("sizes of axes %v, expected 1 at least", mesh.AxesSizes)
		}
	}
	m, err := shardy.NewDeviceMesh(mesh.Name, slices.Clone(mesh.AxesSizes), mesh.AxesNames)
	if err != nil {
		return nil, err
	}
	return m, m.SetLogicalDeviceAssignment(mesh.LogicalDeviceAssignment...)
}

func (b *Builder) DeviceAssignment(devices ...compute.DeviceNum) error {
	if b.compiled {
		return fmt.Errorf("hlo: device assignment: builder %q: %w", b.name, ErrCompiled)
	}
	if len(devices) != b.devices.Count() {
		return fmt.Errorf("hlo: device assignment: got %d devices %v, expected %d", len(devices), devices, b.devices.Count())
	}
	for i, d := range devices {
		if d < 0 || slices.Contains(devices[:i], d) {
			return fmt.Errorf("hlo: device assignment: devices %v, expected different ones, none below 0", devices)
		}
	}
	b.devices.Assignment = slices.Clone(devices)
	return nil
}

// An uneven axis is an error for an input, and whole for an output, as in XLA.
func (b *Builder) sharding(spec *compute.ShardingSpec, shape shapes.Shape, output bool) (*shardy.ShardingSpec, error) {
	if spec == nil {
		return nil, nil
	}
	i := slices.IndexFunc(b.meshes, func(m *shardy.DeviceMesh) bool { return m.Name() == spec.Mesh })
	if i < 0 {
		return nil, fmt.Errorf("sharding over mesh %q, which was not given to DistributedAutoSharding", spec.Mesh)
	}
	split, seen := shardy.NewShardingSpec(b.meshes[i]), []string{}
	for axis, names := range spec.Axes {
		parts := 1
		for _, name := range names {
			if slices.Contains(seen, name) {
				return nil, fmt.Errorf("sharding %v names axis %q of the mesh twice", spec.Axes, name)
			}
			size, err := b.meshes[i].AxisSize(name)
			if err != nil {
				return nil, fmt.Errorf("sharding %v: %w", spec.Axes, err)
			}
			seen, parts = append(seen, name), parts*size
		}
		if axis < shape.Rank() && shape.Dimensions[axis]%parts != 0 {
			if output {
				split.AddReplicated()
				continue
			}
			return nil, fmt.Errorf("sharding %v splits axis %d of %s into %d parts that are not equal", spec.Axes, axis, shape, parts)
		}
		if len(names) == 0 {
			split.AddReplicated()
		} else {
			split.AddShardedAxis(names...)
		}
	}
	if err := split.ValidateShape(toXLA(shape)); err != nil {
		return nil, fmt.Errorf("sharding %v: %w", spec.Axes, err)
	}
	return split, nil
}
