package xla

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/hlo"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

type pjrtClient struct {
	runtime *Runtime
	plugin  Plugin
	client  *pjrt.Client
	devices []*pjrt.Device
	cache   *cache
	shared  sharedPrograms
	across  *across
	log     *slog.Logger
	closed  atomic.Bool
	closing sync.Once
	// turns bounds the runs on callers' threads, or is nil: goroutines wait with less than threads.
	turns chan struct{}

	widestHead int // 0: no cuDNN attention
}

func (c *pjrtClient) kind() string { return c.plugin.Kind }

func (c *pjrtClient) Name() string   { return "lazo" }
func (c *pjrtClient) String() string { return "lazo:" + c.plugin.Kind }

func (c *pjrtClient) Description() string {
	return fmt.Sprintf("%v, %d device(s)", c.plugin, len(c.devices))
}

func (c *pjrtClient) NumDevices() int { return len(c.devices) }

func (c *pjrtClient) DeviceDescription(n compute.DeviceNum) string {
	d, err := c.device(n)
	if err != nil {
		return err.Error()
	}
	return d.String()
}

func (c *pjrtClient) Capabilities() compute.Capabilities { return capabilities(c.widestHead) }

func capabilities(widestHead int) compute.Capabilities {
	all := hlo.Capabilities()
	if widestHead > 0 {
		all.Operations[compute.OpTypeFusedScaledDotProductAttention] = true
		all.Operations[compute.OpTypeFusedScaledDotProductAttentionVJP] = true
	}
	return all
}

func (c *pjrtClient) builder(name string, compile func(*hlo.Module) (compute.Executable, error)) *hlo.Builder {
	return builderFor(name, c.plugin.Kind, c.widestHead, compile)
}

func builderFor(name, kind string, widestHead int, compile func(*hlo.Module) (compute.Executable, error)) *hlo.Builder {
	return hlo.New(name, compile).ForCPU(kind == CPU).ForGPU(kind == CUDA).ForTPU(kind == TPU).ForCUDA(widestHead).Apart()
}

// widestHead is the largest head width of cuDNN flash attention with gradient at a compute capability ("9.0"), or 0. A
// refused head does not compile.
func widestHead(capability any) int {
	var major, minor int
	text, _ := capability.(string)
	switch n, _ := fmt.Sscanf(text, "%d.%d", &major, &minor); {
	case n != 2 || major < 8:
		return 0
	case major == 9:
		return 256
	}
	return 128
}

func (c *pjrtClient) IsFinalized() bool { return c.closed.Load() }

func (c *pjrtClient) Finalize() { _ = c.close() }

func (c *pjrtClient) close() (err error) {
	c.closing.Do(func() {
		c.closed.Store(true)
		err = errors.Join(c.shared.close(), c.client.Close(), c.across.close())
	})
	return err
}

func (c *pjrtClient) device(n compute.DeviceNum) (*pjrt.Device, error) {
	if n < 0 || int(n) >= len(c.devices) {
		return nil, fmt.Errorf("xla: device %d: there are %d", n, len(c.devices))
	}
	return c.devices[n], nil
}

type buffer struct {
	*pjrt.Buffer
	of *pjrtClient
}

var _ compute.Buffer = (*buffer)(nil)

// wrap keeps a nil pointer out of the interface.
func (c *pjrtClient) wrap(b *pjrt.Buffer, err error) (compute.Buffer, error) {
	if err != nil {
		return nil, err
	}
	return &buffer{b, c}, nil
}

func (c *pjrtClient) wrapAll(made [][]*pjrt.Buffer) []compute.Buffer {
	n := 0
	for _, part := range made {
		n += len(part)
	}
	if n == 0 {
		return nil
	}
	buffers, all := make([]buffer, 0, n), make([]compute.Buffer, 0, n)
	for _, part := range made {
		for _, b := range part {
			buffers = append(buffers, buffer{b, c})
			all = append(all, &buffers[len(buffers)-1])
		}
	}
	return all
}

// Backend returns the [Runtime]: GoMLX's tensors compare it.
func (b *buffer) Backend() compute.Backend { return b.of.runtime }

func (b *buffer) Finalize() error { return b.Close() }

func (b *buffer) Shape() (shapes.Shape, error) { return toGoMLX(b.Buffer.Shape()), nil }

func (b *buffer) DeviceNum() (compute.DeviceNum, error) {
	for i, d := range b.of.devices {
		if d == b.Device() {
			return compute.DeviceNum(i), nil
		}
	}
	return 0, fmt.Errorf("xla: the buffer's device %v does not belong to this runtime", b.Device())
}

func (b *buffer) ToFlatData(flat any) error {
	s := b.Buffer.Shape()
	if bits := packedBits(s); bits != 0 {
		packed, err := packedOf(flat, s, bits)
		if err != nil {
			return err
		}
		apart := make([]byte, toGoMLX(s).Size())
		if err := b.ToHost(apart); err != nil {
			return err
		}
		pack(packed, apart, bits)
		return nil
	}
	memory, err := memoryOf(flat, s)
	if err != nil {
		return err
	}
	return b.ToHost(memory)
}

func (b *buffer) CopyToDevice(n compute.DeviceNum) (compute.Buffer, error) {
	d, err := b.of.device(n)
	if err != nil {
		return nil, err
	}
	if d == b.Device() {
		return nil, fmt.Errorf("xla: copy to device %d: the buffer is already on this device", n)
	}
	return b.of.wrap(b.CopyTo(d))
}

func (b *buffer) Data() (any, error) { return nil, errNotShared }

func (c *pjrtClient) BufferFromFlatData(n compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	d, err := c.device(n)
	if err != nil {
		return nil, err
	}
	s := fromGoMLX(shape)
	var memory []byte
	if bits := packedBits(s); bits != 0 {
		var packed []byte
		if packed, err = packedOf(flat, s, bits); err == nil {
			memory = make([]byte, toGoMLX(s).Size())
			unpack(memory, packed, bits)
		}
	} else {
		memory, err = memoryOf(flat, s)
	}
	if err != nil {
		return nil, err
	}
	return c.wrap(d.Put(pjrt.Array{Shape: s, Data: memory}))
}

// HasSharedBuffers is false: GoMLX could silently write to a tensor that a program reads.
func (c *pjrtClient) HasSharedBuffers() bool { return false }

var errNotShared = errors.New("xla: this runtime has no shared buffers")

func (c *pjrtClient) NewSharedBuffer(compute.DeviceNum, shapes.Shape) (compute.Buffer, any, error) {
	return nil, nil, errNotShared
}

// GoMLX and PJRT number dtypes equally.
func toGoMLX(s pjrt.Shape) shapes.Shape { return shapes.Make(dtypes.DType(s.DType), s.Dims...) }

func fromGoMLX(s shapes.Shape) pjrt.Shape {
	return pjrt.Shape{DType: pjrt.DType(s.DType), Dims: s.Dimensions}
}

func memoryOf(flat any, shape pjrt.Shape) ([]byte, error) {
	if flat == nil && slices.Contains(shape.Dims, 0) {
		return []byte{}, nil // like GoMLX's FromRaw
	}
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

func allToGoMLX(list []pjrt.Shape) (all []shapes.Shape, err error) {
	err = graphs.Catch(func() {
		for _, s := range list {
			all = append(all, toGoMLX(s))
		}
	})
	return all, err
}
