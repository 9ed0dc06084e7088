package pjrt

// #include "run.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// Buffer is an array on a device. The caller closes it, even if the array is deleted or donated. A [Call] may replace
// the array.
type Buffer struct {
	*object
	shape  Shape
	device *Device
}

var bufferKind = &kind{name: "buffer", live: &live.buffers, free: func(o *object) error {
	return destroyBuffer(o.client.plugin, o.ptr)
}}

func newBuffer(c *Client, ptr unsafe.Pointer, shape Shape, device *Device) (*Buffer, error) {
	o, err := newObject(c, &object{kind: bufferKind, ptr: ptr})
	if err != nil {
		return nil, err
	}
	return collect(&Buffer{o, shape, device}), nil
}

func destroyBuffer(p *Plugin, ptr unsafe.Pointer) error {
	return p.failure("Buffer_Destroy", C.lazo_destroy_buffer(p.api, ptr))
}

func (b *Buffer) Shape() Shape { return b.shape }

func (b *Buffer) Device() *Device { return b.device }

func (b *Buffer) with(f func(p *Plugin, api *C.lazo_Api) error) error {
	if err := b.use(); err != nil {
		return err
	}
	p := b.client.plugin
	return firstError(f(p, p.api), b.done())
}

func (b *Buffer) Size() (int64, error) {
	var args C.lazo_Buffer_OnDeviceSizeInBytes_Args
	err := b.with(func(p *Plugin, api *C.lazo_Api) error {
		args.buffer = b.ptr
		return invoke(p, "Buffer_OnDeviceSizeInBytes", api.Buffer_OnDeviceSizeInBytes, &args)
	})
	return int64(args.on_device_size_in_bytes), err
}

func (b *Buffer) Ready() (*Event, error) {
	var event *Event
	err := b.with(func(p *Plugin, api *C.lazo_Api) error {
		args := C.lazo_Buffer_ReadyEvent_Args{buffer: b.ptr}
		err := invoke(p, "Buffer_ReadyEvent", api.Buffer_ReadyEvent, &args)
		if err == nil {
			event, err = newEvent(b.client, args.event, nil)
		}
		return err
	})
	return event, err
}

func (b *Buffer) Delete() error {
	return b.with(func(p *Plugin, api *C.lazo_Api) error {
		args := C.lazo_Buffer_Delete_Args{buffer: b.ptr}
		return invoke(p, "Buffer_Delete", api.Buffer_Delete, &args)
	})
}

func (b *Buffer) IsDeleted() (bool, error) {
	deleted := false
	err := b.with(func(p *Plugin, _ *C.lazo_Api) (err error) {
		deleted, err = isDeleted(p, b.ptr)
		return err
	})
	return deleted, err
}

func isDeleted(p *Plugin, ptr unsafe.Pointer) (bool, error) {
	args := C.lazo_Buffer_IsDeleted_Args{buffer: ptr}
	err := invoke(p, "Buffer_IsDeleted", p.api.Buffer_IsDeleted, &args)
	return bool(args.is_deleted), err
}

func (b *Buffer) CopyTo(device *Device) (*Buffer, error) {
	var copied *Buffer
	err := b.with(func(p *Plugin, api *C.lazo_Api) error {
		if device == nil || device.client != b.client {
			return fmt.Errorf("pjrt: copy %v: %w: expected a device of the same client, got %v", b.shape, ErrInvalidArgument, device)
		}
		args := C.lazo_Buffer_CopyToDevice_Args{buffer: b.ptr, dst_device: device.ptr}
		err := invoke(p, "Buffer_CopyToDevice", api.Buffer_CopyToDevice, &args)
		if err == nil {
			copied, err = newBuffer(b.client, args.dst_buffer, b.shape, device)
		}
		return err
	})
	return copied, err
}

// Close releases the buffer. Its memory is freed when no program and no [View] needs it.
func (b *Buffer) Close() error { return closeNow(b) }
