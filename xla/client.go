package xla

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/lazo-ml/lazo/xla/hlo"
	"github.com/lazo-ml/lazo/xla/pjrt"
)

// client is a PJRT client as a GoMLX backend. Its buffers are [*pjrt.Buffer]s.
type client struct {
	plugin  Plugin
	client  *pjrt.Client
	devices []*pjrt.Device
	cache   *cache // nil: none
	shared  shared
	log     *slog.Logger
	closed  atomic.Bool
}

var _ backends.Backend = (*client)(nil)

func (c *client) Name() string   { return "lazo" }
func (c *client) String() string { return "lazo:" + c.plugin.Kind }

func (c *client) Description() string {
	return fmt.Sprintf("%v, %d device(s)", c.plugin, len(c.devices))
}

func (c *client) NumDevices() int { return len(c.devices) }

// DeviceDescription is the plugin's own word for a device.
func (c *client) DeviceDescription(n backends.DeviceNum) string {
	d, err := c.device(n)
	if err != nil {
		return err.Error()
	}
	return d.String()
}

func (c *client) Capabilities() backends.Capabilities { return hlo.Capabilities() }

func (c *client) Builder(name string) backends.Builder {
	return hlo.New(name, c.compile).ForCPU(c.plugin.Kind == CPU)
}

func (c *client) IsFinalized() bool { return c.closed.Load() }

func (c *client) Finalize() { _ = c.close() }

func (c *client) close() error {
	if !c.closed.CompareAndSwap(false, true) {
		return nil
	}
	return errors.Join(c.shared.close(), c.client.Close())
}

func (c *client) device(n backends.DeviceNum) (*pjrt.Device, error) {
	if n < 0 || int(n) >= len(c.devices) {
		return nil, fmt.Errorf("xla: device %d: there are %d", n, len(c.devices))
	}
	return c.devices[n], nil
}

func bufferOf(b backends.Buffer) (*pjrt.Buffer, error) {
	buffer, ok := b.(*pjrt.Buffer)
	if !ok || buffer == nil {
		return nil, fmt.Errorf("xla: a buffer of type %T is none of this runtime's", b)
	}
	return buffer, nil
}

// BufferFinalize frees a buffer.
func (c *client) BufferFinalize(b backends.Buffer) error {
	buffer, err := bufferOf(b)
	if err != nil {
		return err
	}
	return buffer.Close()
}

func (c *client) BufferShape(b backends.Buffer) (shapes.Shape, error) {
	buffer, err := bufferOf(b)
	if err != nil {
		return shapes.Invalid(), err
	}
	return toGoMLX(buffer.Shape()), nil
}

func (c *client) BufferDeviceNum(b backends.Buffer) (backends.DeviceNum, error) {
	buffer, err := bufferOf(b)
	if err != nil {
		return 0, err
	}
	for i, d := range c.devices {
		if d == buffer.Device() {
			return backends.DeviceNum(i), nil
		}
	}
	return 0, fmt.Errorf("xla: the buffer's device %v is none of this runtime's", buffer.Device())
}

func (c *client) BufferToFlatData(b backends.Buffer, flat any) error {
	buffer, err := bufferOf(b)
	if err != nil {
		return err
	}
	memory, err := memoryOf(flat, buffer.Shape())
	if err != nil {
		return err
	}
	return buffer.ToHost(memory)
}

func (c *client) BufferFromFlatData(n backends.DeviceNum, flat any, shape shapes.Shape) (backends.Buffer, error) {
	d, err := c.device(n)
	if err != nil {
		return nil, err
	}
	s := fromGoMLX(shape)
	memory, err := memoryOf(flat, s)
	if err != nil {
		return nil, err
	}
	return notNil(d.Put(pjrt.Array{Shape: s, Data: memory}))
}

// notNil keeps a nil pointer out of an interface.
func notNil(b *pjrt.Buffer, err error) (backends.Buffer, error) {
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (c *client) BufferCopyToDevice(source backends.Buffer, n backends.DeviceNum) (backends.Buffer, error) {
	buffer, err := bufferOf(source)
	if err != nil {
		return nil, err
	}
	d, err := c.device(n)
	if err != nil {
		return nil, err
	}
	if d == buffer.Device() {
		return nil, fmt.Errorf("xla: copy to device %d: the buffer is there already", n)
	}
	return notNil(buffer.CopyTo(d))
}

// HasSharedBuffers is false: a tensor that GoMLX writes to while a program reads it is a fault that nobody would see.
func (c *client) HasSharedBuffers() bool { return false }

var errNotShared = errors.New("xla: this runtime has no shared buffers")

func (c *client) NewSharedBuffer(backends.DeviceNum, shapes.Shape) (backends.Buffer, any, error) {
	return nil, nil, errNotShared
}

func (c *client) BufferData(backends.Buffer) (any, error) { return nil, errNotShared }

// toGoMLX and fromGoMLX translate shapes. The numbers of the types are the same in both.
func toGoMLX(s pjrt.Shape) shapes.Shape { return shapes.Make(dtypes.DType(s.DType), s.Dims...) }

func fromGoMLX(s shapes.Shape) pjrt.Shape {
	return pjrt.Shape{DType: pjrt.DType(s.DType), Dims: s.Dimensions}
}

// memoryOf is the memory of a slice of the elements of an array.
func memoryOf(flat any, shape pjrt.Shape) ([]byte, error) {
	v := reflect.ValueOf(flat)
	want := dtypes.DType(shape.DType)
	if v.Kind() != reflect.Slice || dtypes.FromGoType(v.Type().Elem()) != want {
		return nil, fmt.Errorf("xla: data of type %T for an array %v: expected a slice of %s", flat, shape, want.GoType())
	}
	size, err := shape.Size()
	if err != nil {
		return nil, err
	}
	memory := unsafe.Slice((*byte)(v.UnsafePointer()), v.Len()*int(v.Type().Elem().Size()))
	if len(memory) != size {
		return nil, fmt.Errorf("xla: %d elements for an array %v: expected %d bytes, got %d", v.Len(), shape, size, len(memory))
	}
	return memory, nil
}
