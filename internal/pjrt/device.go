package pjrt

// #include "run.h"
import "C"

import (
	"unsafe"
)

type Device struct {
	client      *Client
	ptr         unsafe.Pointer
	description unsafe.Pointer
	about       DeviceDescription
}

func newDevice(c *Client, ptr unsafe.Pointer) (*Device, error) {
	p := c.plugin
	args := C.lazo_Device_GetDescription_Args{device: ptr}
	if err := invoke(p, "Device_GetDescription", p.api.Device_GetDescription, &args); err != nil {
		return nil, err
	}
	d := &Device{client: c, ptr: ptr, description: args.device_description}
	var err error
	d.about, err = p.describeDevice(d.description)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (p *Plugin) describeDevice(description unsafe.Pointer) (DeviceDescription, error) {
	id := C.lazo_DeviceDescription_Id_Args{device_description: description}
	process := C.lazo_DeviceDescription_ProcessIndex_Args{device_description: description}
	kind := C.lazo_DeviceDescription_Kind_Args{device_description: description}
	text := C.lazo_DeviceDescription_DebugString_Args{device_description: description}
	err := firstError(
		invoke(p, "DeviceDescription_Id", p.api.DeviceDescription_Id, &id),
		invoke(p, "DeviceDescription_ProcessIndex", p.api.DeviceDescription_ProcessIndex, &process),
		invoke(p, "DeviceDescription_Kind", p.api.DeviceDescription_Kind, &kind),
		invoke(p, "DeviceDescription_DebugString", p.api.DeviceDescription_DebugString, &text),
	)
	if err != nil {
		return DeviceDescription{}, err
	}
	return DeviceDescription{
		ID: int(id.id), Process: int(process.process_index),
		Kind: goString(kind.device_kind, kind.device_kind_size), Text: goString(text.debug_string, text.debug_string_size),
	}, nil
}

func (d *Device) ID() int { return d.about.ID }

func (d *Device) ProcessIndex() int { return d.about.Process }

func (d *Device) Kind() string { return d.about.Kind }

func (d *Device) String() string { return d.about.Text }

func (d *Device) Attributes() (map[string]any, error) {
	if err := d.client.use(); err != nil {
		return nil, err
	}
	defer d.client.done()
	return d.client.plugin.deviceAttributes(d.description)
}

func (p *Plugin) deviceAttributes(description unsafe.Pointer) (map[string]any, error) {
	args := C.lazo_DeviceDescription_Attributes_Args{device_description: description}
	if err := invoke(p, "DeviceDescription_Attributes", p.api.DeviceDescription_Attributes, &args); err != nil {
		return nil, err
	}
	return goValues(args.attributes, args.num_attributes)
}

func (d *Device) Memories() ([]Memory, error) {
	if err := d.client.use(); err != nil {
		return nil, err
	}
	defer d.client.done()
	p := d.client.plugin
	list, usual := C.lazo_Device_AddressableMemories_Args{device: d.ptr}, C.lazo_Device_DefaultMemory_Args{device: d.ptr}
	if err := firstError(
		invoke(p, "Device_AddressableMemories", p.api.Device_AddressableMemories, &list),
		invoke(p, "Device_DefaultMemory", p.api.Device_DefaultMemory, &usual),
	); err != nil {
		return nil, err
	}
	var memories []Memory
	for _, ptr := range unsafe.Slice(list.memories, int(list.num_memories)) {
		id, kind := C.lazo_Memory_Id_Args{memory: ptr}, C.lazo_Memory_Kind_Args{memory: ptr}
		err := firstError(invoke(p, "Memory_Id", p.api.Memory_Id, &id), invoke(p, "Memory_Kind", p.api.Memory_Kind, &kind))
		if err != nil {
			return nil, err
		}
		memories = append(memories, Memory{int(id.id), goString(kind.kind, kind.kind_size), ptr == usual.memory})
	}
	return memories, nil
}

// MemoryStats returns the state of the device's memory; [ErrUnimplemented] if the plugin has none, as on CPUs.
func (d *Device) MemoryStats() (MemoryStats, error) {
	if err := d.client.use(); err != nil {
		return MemoryStats{}, err
	}
	defer d.client.done()
	p := d.client.plugin
	a := C.lazo_Device_MemoryStats_Args{device: d.ptr}
	if err := invoke(p, "Device_MemoryStats", p.api.Device_MemoryStats, &a); err != nil {
		return MemoryStats{}, during(err, "memory of %v", d)
	}
	known := func(value C.int64_t, set C.bool) int64 {
		if !bool(set) {
			return -1
		}
		return int64(value)
	}
	return MemoryStats{
		InUse: int64(a.bytes_in_use), PeakInUse: known(a.peak_bytes_in_use, a.peak_bytes_in_use_is_set),
		Limit:    known(a.bytes_limit, a.bytes_limit_is_set),
		Reserved: known(a.bytes_reserved, a.bytes_reserved_is_set), PeakReserved: known(a.peak_bytes_reserved, a.peak_bytes_reserved_is_set),
		Reservable: known(a.bytes_reservable_limit, a.bytes_reservable_limit_is_set),
		Pool:       known(a.pool_bytes, a.pool_bytes_is_set), PeakPool: known(a.peak_pool_bytes, a.peak_pool_bytes_is_set),
		LargestFree: known(a.largest_free_block_bytes, a.largest_free_block_bytes_is_set),
		LargestOne:  known(a.largest_alloc_size, a.largest_alloc_size_is_set),
		Allocations: known(a.num_allocs, a.num_allocs_is_set),
	}, nil
}
