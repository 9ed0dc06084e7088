package pjrt

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/encoding/protowire"
)

const partitioner = "spmd-partitioning"

// Partition returns a StableHLO program after XLA's partitioner: a serialized HloModuleProto with collectives, equal
// for all partitions. options need SPMD and at least two Partitions, the client that many devices. It compiles cheaply,
// unless options.Debug sets otherwise.
//
// The plugin writes the module into a private temporary folder, which Partition removes.
func (c *Client) Partition(program []byte, options CompileOptions) (module []byte, err error) {
	module, err = c.partition(program, options)
	if err != nil {
		return nil, fmt.Errorf("pjrt: partition: %w", err)
	}
	return module, nil
}

func (c *Client) partition(program []byte, options CompileOptions) (module []byte, err error) {
	if !options.SPMD || options.Partitions < 2 || options.Replicas > 1 {
		return nil, fmt.Errorf("%w: %d replicas of %d partitions (SPMD: %v): expected one of two partitions or more, with SPMD", ErrInvalidArgument, max(options.Replicas, 1), options.Partitions, options.SPMD)
	}
	dir, err := os.MkdirTemp("", "lazo-partition-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	debug := map[string]any{"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": true, "xla_cpu_use_fusion_emitters": false}
	maps.Copy(debug, options.Debug)
	debug["xla_dump_to"], debug["xla_dump_hlo_pass_re"], debug["xla_dump_hlo_as_proto"] = dir, "^"+partitioner+"$", true
	options.Debug = debug
	compiled, err := c.Compile(program, options)
	if err != nil {
		return nil, err
	}
	if err := compiled.Close(); err != nil {
		return nil, err
	}
	module, err = dumped(dir)
	if err != nil { // the plugin does not report that it cannot write
		return nil, fmt.Errorf("the module that the plugin wrote below %s: %w: if that disk is full, free space or set $TMPDIR to a folder on another", filepath.Dir(dir), err)
	}
	return module, nil
}

func dumped(dir string) (module []byte, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.after_"+partitioner+".*.hlo.pb"))
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		return nil, fmt.Errorf("%d files of the pass %s, expected 1", len(files), partitioner)
	}
	dump, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	const fieldModule = 1
	for len(dump) > 0 {
		number, kind, size := protowire.ConsumeField(dump)
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		if number == fieldModule && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(dump)
			module, _ = protowire.ConsumeBytes(dump[tag:])
		}
		dump = dump[size:]
	}
	if len(module) == 0 {
		return nil, errors.New("no module in the file")
	}
	return module, nil
}
