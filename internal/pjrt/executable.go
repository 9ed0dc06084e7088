package pjrt

// #include "run.h"
import "C"

import (
	"fmt"
	"maps"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// Runs outlast an Executable's Close.
type Executable struct {
	*object
	name    string
	outputs []Shape
	devices []*Device

	read         sync.Once
	signature    signature
	signatureErr error
}

// ptr is PJRT's loaded executable, pair the executable that describes it.
var executableKind = &kind{name: "executable", live: &live.executables, free: func(o *object) error {
	p := o.client.plugin
	var err error
	if o.pair != nil {
		args := C.lazo_Executable_Destroy_Args{executable: o.pair}
		err = invoke(p, "Executable_Destroy", p.api.Executable_Destroy, &args)
	}
	args := C.lazo_LoadedExecutable_Destroy_Args{executable: o.ptr}
	return firstError(err, invoke(p, "LoadedExecutable_Destroy", p.api.LoadedExecutable_Destroy, &args))
}}

func (c *Client) Compile(program []byte, options CompileOptions) (*Executable, error) {
	encoded, err := checked(program, options)
	if err != nil {
		return nil, err
	}
	return c.compile(program, formatMLIR, encoded)
}

// CompileHLO compiles a serialized HloModuleProto from before or between XLA's first passes (debug option
// xla_dump_hlo_as_proto). Later ones may end the process.
func (c *Client) CompileHLO(module []byte, options CompileOptions) (*Executable, error) {
	if len(module) == 0 {
		return nil, fmt.Errorf("pjrt: compile: %w: the module is empty", ErrInvalidArgument)
	}
	if _, err := parseModule(module); err != nil { // other files make some plugins end the process
		return nil, during(err, "compile: %d bytes, expected a serialized HloModuleProto", len(module))
	}
	encoded, err := options.marshal()
	if err != nil {
		return nil, err
	}
	return c.compile(module, formatHLO, encoded)
}

func (c *Client) compile(program []byte, format string, encoded []byte) (*Executable, error) {
	if err := c.use(); err != nil {
		return nil, err
	}
	defer c.done()
	var pin runtime.Pinner
	defer pin.Unpin()
	args := C.lazo_Client_Compile_Args{client: c.ptr, program: pinnedProgram(program, format, &pin)}
	args.compile_options, args.compile_options_size = pinned(unsafe.SliceData(encoded), len(encoded), &pin)
	start := time.Now()
	var err error
	compiling(program, func() { err = invoke(c.plugin, "Client_Compile", c.plugin.api.Client_Compile, &args) })
	afterCompile(time.Since(start))
	if err != nil {
		return nil, during(err, "compile")
	}
	return c.newExecutable(args.executable)
}

func checked(program []byte, options CompileOptions) (encoded []byte, err error) {
	if len(program) == 0 {
		return nil, fmt.Errorf("pjrt: compile: %w: the program is empty", ErrInvalidArgument)
	}
	if err := checkNesting(program); err != nil {
		return nil, err
	}
	return options.marshal()
}

const (
	formatMLIR = "mlir"
	formatHLO  = "hlo"
)

func pinnedProgram(program []byte, format string, pin *runtime.Pinner) *C.lazo_Program {
	code := &C.lazo_Program{struct_size: C.sizeof_lazo_Program}
	code.code, code.code_size = pinned(unsafe.SliceData(program), len(program), pin)
	code.format, code.format_size = pinned(unsafe.StringData(format), len(format), pin)
	pin.Pin(code)
	return code
}

// Load loads the output of [Executable.Serialize] of the same plugin and kind of device.
func (c *Client) Load(serialized []byte) (*Executable, error) {
	if err := c.use(); err != nil {
		return nil, err
	}
	defer c.done()
	var pin runtime.Pinner
	defer pin.Unpin()
	args := C.lazo_Executable_DeserializeAndLoad_Args{client: c.ptr}
	args.serialized_executable, args.serialized_executable_size = pinned(unsafe.SliceData(serialized), len(serialized), &pin)
	var err error
	WithoutSignals(func() {
		err = invoke(c.plugin, "Executable_DeserializeAndLoad", c.plugin.api.Executable_DeserializeAndLoad, &args)
	})
	if err != nil {
		return nil, during(err, "load an executable of %d bytes", len(serialized))
	}
	return c.newExecutable(args.loaded_executable)
}

func (c *Client) newExecutable(loaded unsafe.Pointer) (*Executable, error) {
	o, err := newObject(c, &object{kind: executableKind, ptr: loaded})
	if err != nil {
		return nil, err
	}
	e := collect(&Executable{object: o})
	if err := e.use(); err != nil {
		return nil, err
	}
	if err := firstError(e.describe(), e.done()); err != nil {
		return nil, firstError(err, e.Close())
	}
	return e, nil
}

func (e *Executable) describe() error {
	p, api := e.client.plugin, e.client.plugin.api
	args := C.lazo_LoadedExecutable_GetExecutable_Args{loaded_executable: e.ptr}
	if err := invoke(p, "LoadedExecutable_GetExecutable", api.LoadedExecutable_GetExecutable, &args); err != nil {
		return err
	}
	e.pair = args.executable
	name := C.lazo_Executable_Name_Args{executable: e.pair}
	on := C.lazo_LoadedExecutable_AddressableDevices_Args{executable: e.ptr}
	err := firstError(
		invoke(p, "Executable_Name", api.Executable_Name, &name),
		invoke(p, "LoadedExecutable_AddressableDevices", api.LoadedExecutable_AddressableDevices, &on),
	)
	e.name = goString(name.executable_name, name.executable_name_size)
	if err == nil {
		e.devices, err = e.client.devicesOf(unsafe.Slice(on.addressable_devices, int(on.num_addressable_devices)))
	}
	if err != nil {
		return err
	}
	e.outputs, err = p.outputsOf(e.pair)
	return err
}

func (p *Plugin) outputsOf(executable unsafe.Pointer) (outputs []Shape, err error) {
	types := C.lazo_Executable_OutputElementTypes_Args{executable: executable}
	dims := C.lazo_Executable_OutputDimensions_Args{executable: executable}
	if err := firstError(
		invoke(p, "Executable_OutputElementTypes", p.api.Executable_OutputElementTypes, &types),
		invoke(p, "Executable_OutputDimensions", p.api.Executable_OutputDimensions, &dims),
	); err != nil {
		return nil, err
	}
	if types.num_output_types != dims.num_outputs {
		return nil, fmt.Errorf("pjrt: the plugin gave %d types and %d shapes of outputs", types.num_output_types, dims.num_outputs)
	}
	dtypes := unsafe.Slice(types.output_types, int(types.num_output_types))
	sizes := unsafe.Slice(dims.dim_sizes, int(dims.num_outputs))
	at := 0
	for i, dtype := range dtypes {
		shape := Shape{DType: DType(dtype)}
		for range int(sizes[i]) {
			shape.Dims = append(shape.Dims, int(unsafe.Slice(dims.dims, at+1)[at]))
			at++
		}
		outputs = append(outputs, shape)
	}
	return outputs, nil
}

func (e *Executable) Name() string { return e.name }

func (e *Executable) Outputs() []Shape { return append([]Shape{}, e.outputs...) }

// Devices are the program's in this process, none if it is portable.
func (e *Executable) Devices() []*Device { return append([]*Device{}, e.devices...) }

func (e *Executable) Parameters() ([]Shape, error) {
	s, err := e.entry()
	return append([]Shape{}, s.parameters...), err
}

// Donated maps outputs to the arguments that they overwrite and a run consumes.
func (e *Executable) Donated() (map[int]int, error) {
	s, err := e.entry()
	donated := map[int]int{}
	maps.Copy(donated, s.donated)
	return donated, err
}

func (e *Executable) entry() (signature, error) {
	e.read.Do(func() { e.signature, e.signatureErr = e.readEntry() })
	return e.signature, e.signatureErr
}

func (e *Executable) readEntry() (signature, error) {
	module, format, err := e.OptimizedProgram()
	if err != nil {
		return signature{}, err
	}
	s, err := signatureOf(module, format)
	if err != nil {
		return signature{}, during(err, "%s", e.name)
	}
	return s, nil
}

func signatureOf(module []byte, format string) (signature, error) {
	if format == "hlo_with_config" {
		err := eachField(module, func(number protowire.Number, _ uint64, data []byte) error {
			if number == fieldModule {
				module = data
			}
			return nil
		})
		if err != nil {
			return signature{}, err
		}
	} else if format != formatHLO {
		return signature{}, fmt.Errorf("pjrt: %w: the optimized program has format %q, expected hlo", ErrUnimplemented, format)
	}
	return parseModule(module)
}

func (e *Executable) with(f func(p *Plugin, api *C.lazo_Api) error) error {
	if err := e.use(); err != nil {
		return err
	}
	p := e.client.plugin
	return firstError(f(p, p.api), e.done())
}

func (e *Executable) Close() error { return closeNow(e) }
