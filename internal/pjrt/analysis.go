package pjrt

// #include "run.h"
//
// static void lazo_delete_serialized(void *deleter, void *serialized) { ((void (*)(void *))deleter)(serialized); }
import "C"

import (
	"runtime"
	"unsafe"
)

// OptimizedProgram returns the program that the plugin runs and its format, "hlo" for a serialized HloModuleProto.
func (e *Executable) OptimizedProgram() (program []byte, format string, err error) {
	err = e.with(func(p *Plugin, _ *C.lazo_Api) (err error) {
		program, format, err = p.optimizedProgram(e.pair)
		return err
	})
	return program, format, err
}

func (p *Plugin) optimizedProgram(executable unsafe.Pointer) (program []byte, format string, err error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	code := C.lazo_Program{struct_size: C.sizeof_lazo_Program}
	pin.Pin(&code)
	args := C.lazo_Executable_OptimizedProgram_Args{executable: executable, program: &code}
	if err := invoke(p, "Executable_OptimizedProgram", p.api.Executable_OptimizedProgram, &args); err != nil {
		return nil, "", err
	}
	program = make([]byte, int(code.code_size))
	code.code, _ = pinned(unsafe.SliceData(program), len(program), &pin)
	if code.code == nil {
		return program, "", nil
	}
	if err := invoke(p, "Executable_OptimizedProgram", p.api.Executable_OptimizedProgram, &args); err != nil {
		return nil, "", err
	}
	return program, goString(code.format, code.format_size), nil
}

// Fingerprint is equal for equal programs, options and compilers. It may be [ErrUnimplemented].
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

// Serialize returns the executable in the plugin's format, for [Client.Load].
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

// CostAnalysis has keys like "flops" and "bytes accessed".
func (e *Executable) CostAnalysis() (map[string]any, error) {
	var costs map[string]any
	err := e.with(func(p *Plugin, _ *C.lazo_Api) (err error) {
		costs, err = p.costAnalysis(e.pair)
		return err
	})
	return costs, err
}

func (p *Plugin) costAnalysis(executable unsafe.Pointer) (map[string]any, error) {
	args := C.lazo_Executable_GetCostAnalysis_Args{executable: executable}
	if err := invoke(p, "Executable_GetCostAnalysis", p.api.Executable_GetCostAnalysis, &args); err != nil {
		return nil, err
	}
	return goValues(args.properties, args.num_properties)
}

func (e *Executable) Memory() (ProgramMemory, error) {
	var m ProgramMemory
	err := e.with(func(p *Plugin, _ *C.lazo_Api) (err error) {
		m, err = p.programMemory(e.pair)
		return err
	})
	return m, err
}

func (p *Plugin) programMemory(executable unsafe.Pointer) (ProgramMemory, error) {
	a := C.lazo_Executable_GetCompiledMemoryStats_Args{executable: executable}
	if err := invoke(p, "Executable_GetCompiledMemoryStats", p.api.Executable_GetCompiledMemoryStats, &a); err != nil {
		return ProgramMemory{}, err
	}
	return ProgramMemory{
		Code: int64(a.generated_code_size_in_bytes), Arguments: int64(a.argument_size_in_bytes),
		Outputs: int64(a.output_size_in_bytes), Aliased: int64(a.alias_size_in_bytes),
		Temporary: int64(a.temp_size_in_bytes), Peak: int64(a.peak_memory_in_bytes),
		HostCode: int64(a.host_generated_code_size_in_bytes), HostArguments: int64(a.host_argument_size_in_bytes),
		HostOutputs: int64(a.host_output_size_in_bytes), HostAliased: int64(a.host_alias_size_in_bytes),
		HostTemporary: int64(a.host_temp_size_in_bytes),
	}, nil
}
