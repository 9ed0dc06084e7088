package xla

import (
	"fmt"
	"maps"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
)

// Job returns [Across]'s job, or nil.
func (r *Runtime) Job() Job {
	if a := r.across(); a != nil {
		return a.job
	}
	return nil
}

func (r *Runtime) across() *across {
	if r == nil {
		return nil
	}
	if c, ok := r.Backend.(*pjrtClient); ok {
		return c.across
	}
	return nil
}

// Local returns this process's devices of a mesh: n from index first. Programs take and return only their values.
func (r *Runtime) Local(m Mesh) (first, n int) {
	n = m.Devices()
	if a := r.across(); a != nil && n > 1 {
		return a.job.Rank() * a.own(), a.own()
	}
	return 0, n
}

// NumDevices counts the devices of all processes ([Across]), 0 after Close; a [compute.DeviceNum] is of this process.
func (r *Runtime) NumDevices() int {
	if r.closed.Load() {
		return 0
	}
	if a := r.across(); a != nil {
		return a.devices()
	}
	return r.Backend.NumDevices()
}

// Description is one line about plugin and devices.
func (r *Runtime) Description() string {
	return fmt.Sprintf("%v, %d device(s)", r.plugin, r.NumDevices())
}

// Topology is [OpenTopology]'s, "" after [Open].
func (r *Runtime) Topology() string {
	if d, ok := r.Backend.(*described); ok {
		return d.name
	}
	return ""
}

// PlatformVersion is the plugin's version text, perhaps of several lines; "" for [Go].
func (r *Runtime) PlatformVersion() string {
	switch on := r.Backend.(type) {
	case *described:
		return on.about.PlatformVersion
	case *pjrtClient:
		return on.client.PlatformVersion()
	}
	return ""
}

// StableHLOVersion is the version that the plugin reads, "1.13.3", or "".
func (r *Runtime) StableHLOVersion() string {
	c, ok := r.Backend.(*pjrtClient)
	if !ok {
		return ""
	}
	about, err := c.client.Plugin().Attributes()
	v, _ := about["stablehlo_current_version"].([]int64)
	if err != nil || len(v) != 3 {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2])
}

// DeviceAttributes has a device's attributes by the plugin's names ("coords"). Values are string, int64, []int64,
// float32 or bool.
func (r *Runtime) DeviceAttributes(n compute.DeviceNum) (map[string]any, error) {
	switch on := r.Backend.(type) {
	case *described:
		if err := on.device(n); err != nil {
			return nil, err
		}
		return maps.Clone(on.about.Devices[n].Attributes), nil
	case *pjrtClient:
		d, err := on.device(n)
		if err != nil {
			return nil, err
		}
		attributes, err := d.Attributes()
		return attributes, WrapError(err)
	}
	return nil, fmt.Errorf("xla: attributes of a device: %w: %s has no devices of its own", ErrUnimplemented, r.plugin.Kind)
}

// DeviceMemory is [ErrUnimplemented] without statistics of the device's memory, as on the CPU.
func (r *Runtime) DeviceMemory(n compute.DeviceNum) (DeviceMemory, error) {
	c, ok := r.Backend.(*pjrtClient)
	if !ok {
		return DeviceMemory{}, fmt.Errorf("xla: memory of a device: %w: %s has no devices of its own", ErrUnimplemented, r.plugin.Kind)
	}
	d, err := c.device(n)
	if err != nil {
		return DeviceMemory{}, err
	}
	stats, err := d.MemoryStats()
	return DeviceMemory(stats), WrapError(err)
}

// Abstract makes a described machine's value from its shape. It fails after [Open].
func (r *Runtime) Abstract(device compute.DeviceNum, shape shapes.Shape) (compute.Buffer, error) {
	d, ok := r.Backend.(*described)
	if !ok {
		return nil, fmt.Errorf("xla: abstract value of %s: %w: %v has real devices: use BufferFromFlatData", shape, ErrUnimplemented, r.plugin)
	}
	return d.put(device, shape)
}

// Close waits for calls in progress and releases the client. Later use of its buffers and programs is [ErrClosed]. A
// second Close returns after the first.
func (r *Runtime) Close() error {
	r.closed.Store(true)
	return r.uses.Close(func() error {
		if on, ok := r.Backend.(*pjrtClient); ok {
			return on.close()
		}
		r.Backend.Finalize()
		return nil
	})
}

// Finalize is GoMLX's name for [Runtime.Close].
func (r *Runtime) Finalize() { _ = r.Close() }
