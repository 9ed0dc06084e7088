package pjrt

// #include "run.h"
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"
)

func (d *Device) Put(a Array) (*Buffer, error) {
	made, err := d.put(a, false)
	if err != nil {
		return nil, err
	}
	return newBuffer(d.client, made.buffer, a.Shape, d)
}

// Share puts an array on the device without a copy, if the device can use host memory and the data is aligned to 64
// bytes; otherwise it copies. Until release is called, keep the data unchanged, and memory outside Go's heap
// allocated. release is called once, in its own goroutine, when the buffer is freed or copied; never if Share fails.
func (d *Device) Share(a Array, release func()) (*Buffer, error) {
	var pin runtime.Pinner
	if len(a.Data) > 0 {
		pin.Pin(&a.Data[0])
	}
	made, err := d.put(a, true)
	if err != nil {
		pin.Unpin()
		return nil, err
	}
	p := d.client.plugin
	shared := make(chan bool, 1)             // if Share succeeded
	err = p.onReady(made.done, func(error) { // the buffer has the copy's error too
		pin.Unpin()
		if <-shared && release != nil {
			release()
		}
	})
	if err != nil {
		// Without the buffer the wait ends.
		_ = firstError(destroyBuffer(p, made.buffer), awaitEvent(p, made.done), destroyEvent(p, made.done))
		pin.Unpin()
		return nil, err
	}
	var b *Buffer
	if err = destroyEvent(p, made.done); err == nil { // the callback stays registered
		b, err = newBuffer(d.client, made.buffer, a.Shape, d)
	} else {
		err = firstError(err, destroyBuffer(p, made.buffer))
	}
	shared <- err == nil
	return b, err
}

func (d *Device) put(a Array, share bool) (C.lazo_made, error) {
	if err := a.check(); err != nil {
		return C.lazo_made{}, err
	}
	if err := d.client.use(); err != nil {
		return C.lazo_made{}, err
	}
	defer d.client.done()
	var dims, strides [8]C.int64_t
	zeroCopy := C.int(0)
	if share {
		zeroCopy = 1
	}
	p := d.client.plugin
	made := C.lazo_from_host(p.api, d.client.ptr, d.ptr, unsafe.Pointer(unsafe.SliceData(a.Data)), C.int(a.DType),
		numbers(dims[:0], a.Dims), C.size_t(len(a.Dims)), numbers(strides[:0], a.Strides), zeroCopy)
	if err := p.failure(runCalls[made.failed], made.error); err != nil {
		return made, during(err, "put %v on %v", a.Shape, d)
	}
	return made, nil
}

func numbers(memory []C.int64_t, list []int) *C.int64_t {
	if len(list) == 0 {
		return nil
	}
	for _, n := range list {
		memory = append(memory, C.int64_t(n))
	}
	return &memory[0]
}

// ToHost waits for the array and copies it to dst, row-major, of exactly its size.
func (b *Buffer) ToHost(dst []byte) error {
	if err := b.checkRoom(dst); err != nil {
		return err
	}
	if err := b.use(); err != nil {
		return err
	}
	p := b.client.plugin
	how := C.int(C.LAZO_COPY_WAIT)
	if !b.shape.DType.packed() {
		how = C.LAZO_COPY_READ
	}
	b.refer.Lock()
	copied := C.lazo_to_host(p.api, b.ptr, C.size_t(len(b.shape.Dims)), unsafe.Pointer(unsafe.SliceData(dst)), C.size_t(len(dst)), how)
	b.refer.Unlock()
	err := p.failure(runCalls[copied.failed], copied.error)
	if err != nil {
		err = during(err, "fetch %v", b.shape)
	}
	return firstError(err, b.done())
}

// StartToHost is [Buffer.ToHost] without the wait. Do not use dst before the event.
func (b *Buffer) StartToHost(dst []byte) (*Event, error) {
	if err := b.checkRoom(dst); err != nil {
		return nil, err
	}
	var event *Event
	err := b.with(func(p *Plugin, api *C.lazo_Api) error {
		until := new(held)
		if len(dst) > 0 {
			until.pin.Pin(&dst[0])
		}
		copied := C.lazo_to_host(api, b.ptr, C.size_t(len(b.shape.Dims)), unsafe.Pointer(unsafe.SliceData(dst)), C.size_t(len(dst)), C.LAZO_COPY_START)
		err := p.failure(runCalls[copied.failed], copied.error)
		if err != nil {
			until.pin.Unpin()
			return during(err, "fetch %v", b.shape)
		}
		event, err = newEvent(b.client, copied.event, until)
		return err
	})
	return event, err
}

func (b *Buffer) checkRoom(dst []byte) error {
	need, err := b.shape.Size()
	if err == nil && len(dst) != need {
		err = fmt.Errorf("pjrt: fetch %v: %w: expected room for %d bytes, got %d", b.shape, ErrInvalidArgument, need, len(dst))
	}
	return err
}

// View is a buffer's memory, on devices that share it with the host.
type View struct {
	*object
	// Data is the row-major array, until Close. Do not write to it while a program may read it.
	Data []byte
}

var viewKind = &kind{name: "view", live: &live.views, free: func(o *object) error {
	p := o.client.plugin
	args := C.lazo_Buffer_DecreaseExternalReferenceCount_Args{buffer: o.ptr}
	o.of.refer.Lock()
	err := invoke(p, "Buffer_DecreaseExternalReferenceCount", p.api.Buffer_DecreaseExternalReferenceCount, &args)
	o.of.refer.Unlock()
	return firstError(err, o.of.done())
}}

// View waits for the array and returns its memory without a copy; [ErrUnimplemented] if it is not in host memory. It
// keeps the array: a run that would replace it returns [ErrBusy].
func (b *Buffer) View() (*View, error) {
	need, err := b.shape.Size()
	if err != nil {
		return nil, err
	}
	if err := b.use(); err != nil {
		return nil, err
	}
	data, err := b.expose(need)
	if err != nil {
		return nil, firstError(err, b.done())
	}
	o, err := newObject(b.client, &object{kind: viewKind, ptr: b.ptr, of: b.object})
	if err != nil {
		return nil, err
	}
	return collect(&View{o, unsafe.Slice((*byte)(data), need)}), nil
}

func (b *Buffer) expose(need int) (unsafe.Pointer, error) {
	p := b.client.plugin
	ready, err := b.Ready()
	if err != nil {
		return nil, err
	}
	if err := firstError(ready.Await(), ready.Close()); err != nil {
		return nil, during(err, "view %v", b.shape)
	}
	host := C.lazo_Buffer_IsOnCpu_Args{buffer: b.ptr}
	if err := invoke(p, "Buffer_IsOnCpu", p.api.Buffer_IsOnCpu, &host); err != nil {
		return nil, err
	}
	size, err := b.Size()
	if err != nil {
		return nil, err
	}
	if !bool(host.is_on_cpu) || size != int64(need) {
		return nil, fmt.Errorf("pjrt: view %v: %w: it is %d bytes on %v, not the host's form of %d bytes", b.shape, ErrUnimplemented, size, b.device, need)
	}
	b.refer.Lock()
	defer b.refer.Unlock()
	count := C.lazo_Buffer_IncreaseExternalReferenceCount_Args{buffer: b.ptr}
	if err := invoke(p, "Buffer_IncreaseExternalReferenceCount", p.api.Buffer_IncreaseExternalReferenceCount, &count); err != nil {
		return nil, err
	}
	place := C.lazo_Buffer_OpaqueDeviceMemoryDataPointer_Args{buffer: b.ptr}
	if err := invoke(p, "Buffer_OpaqueDeviceMemoryDataPointer", p.api.Buffer_OpaqueDeviceMemoryDataPointer, &place); err != nil {
		back := C.lazo_Buffer_DecreaseExternalReferenceCount_Args{buffer: b.ptr}
		return nil, firstError(err, invoke(p, "Buffer_DecreaseExternalReferenceCount", p.api.Buffer_DecreaseExternalReferenceCount, &back))
	}
	return place.device_memory_ptr, nil
}

func (v *View) Close() error { return closeNow(v) }
