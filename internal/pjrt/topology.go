package pjrt

// #include "run.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// Topology is a machine described by a plugin, with devices that need not be present. Goroutines may share it.
type Topology struct {
	plugin  *Plugin
	name    string
	text    string
	devices []DeviceDescription
	more    []map[string]any
	about   map[string]any

	mu  sync.RWMutex // Close writes
	ptr unsafe.Pointer
}

// NewTopology describes a machine. name and options are the plugin's: libtpu takes names like "v5e:4x4", the CUDA
// plugin an option "target_config". Option types are those of [Plugin.NewClient].
func (p *Plugin) NewTopology(name string, options map[string]any) (*Topology, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	list, err := cValues(options, &pin)
	if err != nil {
		return nil, err
	}
	args := C.lazo_TopologyDescription_Create_Args{create_options: unsafe.SliceData(list), num_options: C.size_t(len(list))}
	args.topology_name, args.topology_name_size = pinned(unsafe.StringData(name), len(name), &pin)
	WithoutSignals(func() { err = invoke(p, "TopologyDescription_Create", p.api.TopologyDescription_Create, &args) })
	if err != nil {
		return nil, during(err, "describe the topology %q", name)
	}
	live.topologies.Add(1)
	t := &Topology{plugin: p, ptr: args.topology}
	if err := t.describe(); err != nil {
		return nil, firstError(during(err, "describe the topology %q", name), t.Close())
	}
	return t, nil
}

func (t *Topology) describe() error {
	p, api := t.plugin, t.plugin.api
	name := C.lazo_TopologyDescription_PlatformName_Args{topology: t.ptr}
	text := C.lazo_TopologyDescription_PlatformVersion_Args{topology: t.ptr}
	all := C.lazo_TopologyDescription_GetDeviceDescriptions_Args{topology: t.ptr}
	about := C.lazo_TopologyDescription_Attributes_Args{topology: t.ptr}
	err := firstError(
		invoke(p, "TopologyDescription_PlatformName", api.TopologyDescription_PlatformName, &name),
		invoke(p, "TopologyDescription_PlatformVersion", api.TopologyDescription_PlatformVersion, &text),
		invoke(p, "TopologyDescription_GetDeviceDescriptions", api.TopologyDescription_GetDeviceDescriptions, &all),
		invoke(p, "TopologyDescription_Attributes", api.TopologyDescription_Attributes, &about),
	)
	if err != nil {
		return err
	}
	t.name, t.text = goString(name.platform_name, name.platform_name_size), goString(text.platform_version, text.platform_version_size)
	if t.about, err = goValues(about.attributes, about.num_attributes); err != nil {
		return err
	}
	for _, ptr := range unsafe.Slice(all.descriptions, int(all.num_descriptions)) {
		d, err := p.describeDevice(ptr)
		if err != nil {
			return err
		}
		more, err := p.deviceAttributes(ptr)
		if err != nil {
			return err
		}
		t.devices, t.more = append(t.devices, d), append(t.more, more)
	}
	return nil
}

func (t *Topology) Platform() string { return t.name }

func (t *Topology) PlatformVersion() string { return t.text }

func (t *Topology) Devices() []DeviceDescription { return append([]DeviceDescription{}, t.devices...) }

func (t *Topology) DeviceAttributes() []map[string]any { return append([]map[string]any{}, t.more...) }

func (t *Topology) Attributes() map[string]any {
	all := map[string]any{}
	for name, value := range t.about {
		all[name] = value
	}
	return all
}

// Compile compiles StableHLO, as text or MLIR bytecode, for the described devices. An unsupported program may end the
// process: use a child process.
func (t *Topology) Compile(program []byte, options CompileOptions) (*Compiled, error) {
	encoded, err := checked(program, options)
	if err != nil {
		return nil, err
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.ptr == nil {
		return nil, errTopologyClosed
	}
	p := t.plugin
	var pin runtime.Pinner
	defer pin.Unpin()
	args := C.lazo_Compile_Args{topology: t.ptr, program: pinnedProgram(program, formatMLIR, &pin)}
	args.compile_options, args.compile_options_size = pinned(unsafe.SliceData(encoded), len(encoded), &pin)
	start := time.Now()
	compiling(program, func() { err = invoke(p, "Compile", p.api.Compile, &args) })
	afterCompile(time.Since(start))
	if err != nil {
		return nil, during(err, "compile")
	}
	live.executables.Add(1)
	compiled, err := p.compiled(args.executable)
	destroy := C.lazo_Executable_Destroy_Args{executable: args.executable}
	err = firstError(err, invoke(p, "Executable_Destroy", p.api.Executable_Destroy, &destroy))
	live.executables.Add(-1)
	if err != nil {
		return nil, during(err, "compile")
	}
	return compiled, nil
}

func (p *Plugin) compiled(executable unsafe.Pointer) (*Compiled, error) {
	name := C.lazo_Executable_Name_Args{executable: executable}
	if err := invoke(p, "Executable_Name", p.api.Executable_Name, &name); err != nil {
		return nil, err
	}
	c := &Compiled{Name: goString(name.executable_name, name.executable_name_size)}
	var err error
	if c.Outputs, err = p.outputsOf(executable); err != nil {
		return nil, err
	}
	if c.Optimized, c.Format, err = p.optimizedProgram(executable); err != nil {
		return nil, err
	}
	entry, err := signatureOf(c.Optimized, c.Format)
	if err != nil {
		return nil, err
	}
	c.Parameters, c.Donated = entry.parameters, entry.donated
	if c.Cost, err = p.costAnalysis(executable); ifImplemented(err) != nil {
		return nil, err
	}
	switch memory, err := p.programMemory(executable); {
	case err == nil:
		c.Memory = &memory
	case ifImplemented(err) != nil:
		return nil, err
	}
	print := C.lazo_Executable_Fingerprint_Args{executable: executable}
	err = invoke(p, "Executable_Fingerprint", p.api.Executable_Fingerprint, &print)
	if err == nil {
		c.Fingerprint = goString(print.executable_fingerprint, print.executable_fingerprint_size)
	}
	return c, ifImplemented(err)
}

func ifImplemented(err error) error {
	if errors.Is(err, ErrUnimplemented) {
		return nil
	}
	return err
}

var errTopologyClosed = fmt.Errorf("pjrt: the topology is %w", ErrClosed)

func (t *Topology) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ptr == nil {
		return errTopologyClosed
	}
	args := C.lazo_TopologyDescription_Destroy_Args{topology: t.ptr}
	t.ptr = nil
	live.topologies.Add(-1)
	return invoke(t.plugin, "TopologyDescription_Destroy", t.plugin.api.TopologyDescription_Destroy, &args)
}
