package pjrt

// #include "run.h"
//
// static void lazo_delete_serialized(void *deleter, void *serialized) { ((void (*)(void *))deleter)(serialized); }
import "C"

import (
	"runtime"
	"unsafe"
)

// OptimizedProgram is the program as the plugin runs it, and its format: "hlo" is a serialized HloModuleProto.
func (e *Executable) OptimizedProgram() (program []byte, format string, err error) {
	err = e.with(func(p *Plugin, api *C.lazo_Api) error {
		var pin runtime.Pinner
		defer pin.Unpin()
		code := C.lazo_Program{struct_size: C.sizeof_lazo_Program}
		pin.Pin(&code)
		args := C.lazo_Executable_OptimizedProgram_Args{executable: e.pair, program: &code}
		if err := invoke(p, "Executable_OptimizedProgram", api.Executable_OptimizedProgram, &args); err != nil {
			return err
		}
		program = make([]byte, int(code.code_size))
		code.code, _ = pinned(unsafe.SliceData(program), len(program), &pin)
		if code.code == nil {
			return nil
		}
		err := invoke(p, "Executable_OptimizedProgram", api.Executable_OptimizedProgram, &args)
		format = goString(code.format, code.format_size)
		return err
	})
	return program, format, err
}

// Fingerprint is the same for executables of the same program, options and compiler; [ErrUnimplemented] where the
// plugin has none.
func (e *Executable) Fingerprint() (string, error) {
	var text string
	err := e.with(func(p *Plugin, api *C.lazo_Api) error {
		args := C.lazo_Executable_Fingerprint_Args{executable: e.pair}
		err := invoke(p, "Executable_Fingerprint", api.Executable_Fingerprint, &args)
		if err == nil {
			text = goString(args.executable_fingerprint, args.executable_fingerprint_size)
		}
		return err
	})
	return text, err
}

// Serialize gives the executable in the plugin's own form, for [Client.Load].
func (e *Executable) Serialize() ([]byte, error) {
	var serialized []byte
	err := e.with(func(p *Plugin, api *C.lazo_Api) error {
		args := C.lazo_Executable_Serialize_Args{executable: e.pair}
		if err := invoke(p, "Executable_Serialize", api.Executable_Serialize, &args); err != nil {
			return during(err, "serialize %s", e.name)
		}
		serialized = goBytes(args.serialized_bytes, args.serialized_bytes_size)
		if args.serialized_executable_deleter != nil {
			C.lazo_delete_serialized(args.serialized_executable_deleter, args.serialized_executable)
		}
		return nil
	})
	return serialized, err
}

// CostAnalysis is what the compiler reckons of the program, such as "flops" and "bytes accessed".
func (e *Executable) CostAnalysis() (map[string]any, error) {
	var costs map[string]any
	err := e.with(func(p *Plugin, api *C.lazo_Api) error {
		args := C.lazo_Executable_GetCostAnalysis_Args{executable: e.pair}
		err := invoke(p, "Executable_GetCostAnalysis", api.Executable_GetCostAnalysis, &args)
		if err == nil {
			costs, err = goValues(args.properties, args.num_properties)
		}
		return err
	})
	return costs, err
}

// ProgramMemory is the memory in bytes that a program needs on each device. Aliased is what is both argument and
// output.
type ProgramMemory struct {
	Code, Arguments, Outputs, Aliased, Temporary, Peak               int64
	HostCode, HostArguments, HostOutputs, HostAliased, HostTemporary int64
}

// Memory is what the compiler reckons of the program's memory.
func (e *Executable) Memory() (ProgramMemory, error) {
	var a C.lazo_Executable_GetCompiledMemoryStats_Args
	err := e.with(func(p *Plugin, api *C.lazo_Api) error {
		a.executable = e.pair
		return invoke(p, "Executable_GetCompiledMemoryStats", api.Executable_GetCompiledMemoryStats, &a)
	})
	return ProgramMemory{
		Code: int64(a.generated_code_size_in_bytes), Arguments: int64(a.argument_size_in_bytes),
		Outputs: int64(a.output_size_in_bytes), Aliased: int64(a.alias_size_in_bytes),
		Temporary: int64(a.temp_size_in_bytes), Peak: int64(a.peak_memory_in_bytes),
		HostCode: int64(a.host_generated_code_size_in_bytes), HostArguments: int64(a.host_argument_size_in_bytes),
		HostOutputs: int64(a.host_output_size_in_bytes), HostAliased: int64(a.host_alias_size_in_bytes),
		HostTemporary: int64(a.host_temp_size_in_bytes),
	}, err
}
