package hlo_test

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

// device is a GoMLX backend for tests: hlo's builder, with internal/pjrt to compile and run.
type device struct {
	client *pjrt.Client
	last   *hlo.Module // the last compiled module
}

var (
	_         compute.Backend = (*device)(nil)
	errNot                    = errors.New("the test backend has no shared buffers")
	oneClient                 = sync.OnceValues(func() (*pjrt.Client, error) {
		found, err := install.Find("cpu", "")
		if err != nil {
			return nil, err
		}
		plugin, err := pjrt.Load(found.Path)
		if err != nil {
			return nil, err
		}
		return plugin.NewClient(map[string]any{"cpu_device_count": int64(2)}, nil)
	})
)

// open returns the CPU plugin with two devices. `make setup` installs the plugin.
func open(t testing.TB) *device {
	t.Helper()
	client, err := oneClient()
	require.NoError(t, err, "these tests need the CPU plugin: make setup")
	return &device{client: client}
}

func (d *device) Name() string                               { return "hlo test" }
func (d *device) String() string                             { return d.Name() }
func (d *device) Description() string                        { return d.Name() }
func (d *device) NumDevices() int                            { return len(d.client.AddressableDevices()) }
func (d *device) DeviceDescription(compute.DeviceNum) string { return "" }
func (d *device) Capabilities() compute.Capabilities         { return hlo.Capabilities() }
func (d *device) Builder(name string) compute.Builder        { return hlo.New(name, d.compile) }
func (d *device) Finalize()                                  {}
func (d *device) IsFinalized() bool                          { return false }
func (d *device) HasSharedBuffers() bool                     { return false }

func (d *device) NewSharedBuffer(compute.DeviceNum, shapes.Shape) (compute.Buffer, any, error) {
	return nil, nil, errNot
}

// buffer is a value on a device.
type buffer struct {
	*pjrt.Buffer
	d *device
}

func (b buffer) Backend() compute.Backend                               { return b.d }
func (b buffer) Finalize() error                                        { return b.Close() }
func (b buffer) DeviceNum() (compute.DeviceNum, error)                  { return 0, nil }
func (b buffer) Data() (any, error)                                     { return nil, errNot }
func (b buffer) CopyToDevice(compute.DeviceNum) (compute.Buffer, error) { return nil, errNot }
func (b buffer) ToFlatData(flat any) error                              { return b.ToHost(memory(flat)) }
func (b buffer) Shape() (shapes.Shape, error) {
	s := b.Buffer.Shape()
	return shapes.Make(dtypes.DType(s.DType), s.Dims...), nil
}

func memory(flat any) []byte {
	v := reflect.ValueOf(flat)
	if v.Len() == 0 {
		return make([]byte, 0, 1)
	}
	return unsafe.Slice((*byte)(v.UnsafePointer()), v.Len()*int(v.Type().Elem().Size()))
}

func (d *device) BufferFromFlatData(on compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	b, err := d.client.AddressableDevices()[on].Put(pjrt.Array{Shape: pjrt.Shape{DType: pjrt.DType(shape.DType), Dims: shape.Dimensions}, Data: memory(flat)})
	return buffer{b, d}, err
}

type executable struct {
	d      *device
	module *hlo.Module
	exec   *pjrt.Executable
}

func (d *device) compile(m *hlo.Module) (compute.Executable, error) {
	d.last = m
	exec, err := d.client.Compile([]byte(m.Text()), pjrt.CompileOptions{
		Replicas: m.Devices.Replicas, Partitions: m.Devices.Partitions, SPMD: m.Devices.Shardy(), Shardy: m.Devices.Shardy(),
		Debug: map[string]any{"xla_cpu_enable_fast_min_max": false}, // as in package xla: a minimum keeps a NaN
	})
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, m.Text())
	}
	return &executable{d, m, exec}, nil
}

func (e *executable) Finalize() { _ = e.exec.Close() }

func (e *executable) Inputs() (names []string, all []shapes.Shape) {
	for _, p := range e.module.Parameters {
		names, all = append(names, p.Name), append(all, p.Shape)
	}
	return names, all
}

func (e *executable) Outputs() (all []shapes.Shape) {
	for _, o := range e.module.Outputs {
		all = append(all, o.Shape)
	}
	return all
}

// Execute takes inputs and returns outputs device after device. It overwrites only donated inputs.
func (e *executable) Execute(inputs []compute.Buffer, donate []bool, _ compute.DeviceNum) ([]compute.Buffer, error) {
	devices := e.exec.Devices()
	args, n := make([][]*pjrt.Buffer, len(devices)), len(inputs)/len(devices)
	for i, in := range inputs {
		args[i/n] = append(args[i/n], in.(buffer).Buffer)
	}
	var keep []int
	for i := range n {
		if len(donate) == 0 || !donate[i] {
			keep = append(keep, i)
		}
	}
	x, err := e.exec.Execute(args, pjrt.ExecuteOptions{Keep: keep})
	if err == nil {
		err = x.Await()
	}
	if err != nil {
		return nil, err
	}
	var outputs []compute.Buffer
	for _, list := range x.Outputs {
		for _, b := range list {
			outputs = append(outputs, buffer{b, e.d})
		}
	}
	x.Outputs = nil
	return outputs, x.Close()
}

// program is a builder with its main function.
type program struct {
	*hlo.Builder
	*hlo.Function
}

func programOf(b *hlo.Builder) program { return program{b, b.Main().(*hlo.Function)} }

// Finish returns from main and compiles.
func (p program) Finish(outputs []compute.Value, shardings ...*compute.ShardingSpec) (compute.Executable, error) {
	if err := p.Return(outputs, shardings); err != nil {
		return nil, err
	}
	return p.Compile()
}

// run compiles and runs a program on a backend. Each input is a parameter.
func run(on compute.Backend, inputs []array, build builds) ([]array, error) {
	b := on.Builder("test")
	main := b.Main()
	values := make([]compute.Value, len(inputs))
	for i, in := range inputs {
		var err error
		if values[i], err = main.Parameter(fmt.Sprintf("input %d", i), in.shape, nil); err != nil {
			return nil, err
		}
	}
	outputs, err := build(main, values)
	if err != nil {
		return nil, err
	}
	if err := main.Return(outputs, nil); err != nil {
		return nil, err
	}
	exec, err := b.Compile()
	if err != nil {
		return nil, err
	}
	defer exec.Finalize()
	return execute(on, exec, 1, inputs...)
}

// execute sends inputs (device after device), runs a program, and fetches its outputs.
func execute(on compute.Backend, exec compute.Executable, devices int, inputs ...array) ([]array, error) {
	sent := make([]compute.Buffer, len(inputs))
	for i, in := range inputs {
		var err error
		if sent[i], err = on.BufferFromFlatData(compute.DeviceNum(i*devices/len(inputs)), in.flat, in.shape); err != nil {
			return nil, err
		}
		defer sent[i].Finalize()
	}
	got, err := exec.Execute(sent, make([]bool, len(sent)), 0)
	if err != nil {
		return nil, err
	}
	results := make([]array, len(got))
	for i, b := range got {
		shape, err := b.Shape()
		if err != nil {
			return nil, err
		}
		results[i] = zeros(shape)
		if err := b.ToFlatData(results[i].flat); err != nil {
			return nil, err
		}
		if shape.DType.IsPacked() { // devices may set the upper bits
			for j := range shape.Size() {
				results[i].setInteger(j, results[i].integer(j))
			}
		}
		if err := b.Finalize(); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// runModule compiles and runs a module.
func runModule(t testing.TB, d *device, m *hlo.Module, inputs ...array) []array {
	t.Helper()
	exec, err := d.compile(m)
	require.NoError(t, err)
	defer exec.Finalize()
	results, err := execute(d, exec, 1, inputs...)
	require.NoError(t, err)
	return results
}
