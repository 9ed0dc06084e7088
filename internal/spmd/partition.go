package spmd

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

const partitioner = "spmd-partitioning"

// Partition returns a StableHLO program after XLA's partitioner: a serialized HloModuleProto with collectives, equal
// for all partitions; see [Rewrite]. options need SPMD and at least two Partitions, client that many devices.
//
// The plugin writes the module into a private temporary folder, which Partition removes.
func Partition(client *pjrt.Client, program []byte, options pjrt.CompileOptions) (module []byte, err error) {
	module, err = partition(client, program, options, cheap)
	if err != nil {
		return nil, fmt.Errorf("spmd: partition: %w", err)
	}
	return module, nil
}

func partition(client *pjrt.Client, program []byte, options pjrt.CompileOptions, more map[string]any) (module []byte, err error) {
	if !options.SPMD || options.Partitions < 2 || options.Replicas > 1 {
		return nil, fmt.Errorf("%w: %d replicas of %d partitions (SPMD: %v): expected one of two partitions or more, with SPMD", pjrt.ErrInvalidArgument, max(options.Replicas, 1), options.Partitions, options.SPMD)
	}
	dir, err := os.MkdirTemp("", "lazo-partition-*") // mode 0700
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	debug := maps.Clone(options.Debug)
	if debug == nil {
		debug = map[string]any{}
	}
	maps.Copy(debug, more)
	debug["xla_dump_to"], debug["xla_dump_hlo_pass_re"], debug["xla_dump_hlo_as_proto"] = dir, "^"+partitioner+"$", true
	options.Debug = debug
	compiled, err := client.Compile(program, options)
	if err != nil {
		return nil, err
	}
	if err := compiled.Close(); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.after_"+partitioner+".*.hlo.pb"))
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		return nil, fmt.Errorf("the plugin wrote the module after its pass %s %d times, expected once", partitioner, len(files))
	}
	dump, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	fields, err := fieldsOf(dump)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		if f.number == fieldModule && err == nil {
			module, err = f.bytes()
		}
	}
	if err == nil && len(module) == 0 {
		err = fmt.Errorf("%w: the plugin's file has no module", errMalformed)
	}
	return module, err
}

var cheap = map[string]any{
	"xla_backend_optimization_level":    0,
	"xla_llvm_disable_expensive_passes": true,
	"xla_cpu_use_fusion_emitters":       false,
}
