package pjrt

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// The zero CompileOptions compile one program for the first device.
type CompileOptions struct {
	// Replicas run a program on their own data; Partitions are the parts of one. 0 means 1.
	Replicas, Partitions int
	// Devices has device IDs, Replicas rows of Partitions each. If empty, the plugin chooses.
	Devices []int
	// SPMD makes XLA partition the program by its annotations; Shardy enables Shardy's.
	SPMD, Shardy bool
	// Portable compiles for any single device, which [ExecuteOptions] selects.
	Portable bool
	// Debug sets XLA's DebugOptions, like "xla_cpu_enable_fast_math", to string, bool, int, int64 or float64.
	Debug map[string]any
}

// Fields written, from XLA's compile_options.proto and xla_data.proto.
const (
	// CompileOptionsProto
	fieldBuildOptions = 3
	fieldPortable     = 4
	fieldOverrides    = 7 // map<string, OptionOverrideProto>

	// ExecutableBuildOptionsProto
	fieldDeviceOrdinal    = 1
	fieldReplicas         = 4
	fieldPartitions       = 5
	fieldSPMD             = 6
	fieldDeviceAssignment = 9
	fieldShardy           = 19

	// DeviceAssignmentProto
	fieldReplicaCount       = 1
	fieldComputationCount   = 2
	fieldComputationDevices = 3
	// ComputationDevice
	fieldReplicaDevices = 1

	// an entry of a map
	fieldKey   = 1
	fieldValue = 2
	// OptionOverrideProto
	fieldString = 1
	fieldBool   = 2
	fieldInt    = 3
	fieldDouble = 4
)

func appendVarint(to []byte, field protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(to, field, protowire.VarintType), uint64(v))
}

func appendBytes(to []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, field, protowire.BytesType), v)
}

func appendBool(to []byte, field protowire.Number, v bool) []byte {
	if !v {
		return to
	}
	return appendVarint(to, field, 1)
}

func (o CompileOptions) marshal() ([]byte, error) {
	replicas, partitions := max(o.Replicas, 1), max(o.Partitions, 1)
	if o.Replicas < 0 || o.Partitions < 0 {
		return nil, fmt.Errorf("pjrt: compile: %w: %d replicas and %d partitions", ErrInvalidArgument, o.Replicas, o.Partitions)
	}
	build := appendVarint(nil, fieldDeviceOrdinal, -1)
	build = appendVarint(build, fieldReplicas, int64(replicas))
	build = appendVarint(build, fieldPartitions, int64(partitions))
	build = appendBool(build, fieldSPMD, o.SPMD)
	build = appendBool(build, fieldShardy, o.Shardy)
	if len(o.Devices) > 0 {
		if len(o.Devices) != replicas*partitions || o.Portable {
			return nil, fmt.Errorf("pjrt: compile: %w: got %d devices for %d replicas of %d partitions (portable: %v): expected one each, none for a portable program",
				ErrInvalidArgument, len(o.Devices), replicas, partitions, o.Portable)
		}
		build = appendBytes(build, fieldDeviceAssignment, assignment(o.Devices, replicas, partitions))
	}
	options := appendBytes(nil, fieldBuildOptions, build)
	options = appendBool(options, fieldPortable, o.Portable)
	for _, name := range slices.Sorted(maps.Keys(o.Debug)) {
		value, err := override(o.Debug[name])
		if err != nil {
			return nil, fmt.Errorf("pjrt: compile: debug option %q: %w", name, err)
		}
		entry := appendBytes(appendBytes(nil, fieldKey, []byte(name)), fieldValue, value)
		options = appendBytes(options, fieldOverrides, entry)
	}
	return options, nil
}

func assignment(devices []int, replicas, partitions int) []byte {
	list := appendVarint(nil, fieldReplicaCount, int64(replicas))
	list = appendVarint(list, fieldComputationCount, int64(partitions))
	for p := range partitions {
		var ids []byte
		for r := range replicas {
			ids = protowire.AppendVarint(ids, uint64(devices[r*partitions+p]))
		}
		list = appendBytes(list, fieldComputationDevices, appendBytes(nil, fieldReplicaDevices, ids))
	}
	return list
}

func override(value any) ([]byte, error) {
	switch v := value.(type) {
	case string:
		return appendBytes(nil, fieldString, []byte(v)), nil
	case bool: // an explicit false is written too
		return appendVarint(nil, fieldBool, map[bool]int64{true: 1}[v]), nil
	case int:
		return appendVarint(nil, fieldInt, int64(v)), nil
	case int64:
		return appendVarint(nil, fieldInt, v), nil
	case float64:
		return protowire.AppendFixed64(protowire.AppendTag(nil, fieldDouble, protowire.Fixed64Type), math.Float64bits(v)), nil
	}
	return nil, fmt.Errorf("%w: type %T, expected string, bool, int, int64 or float64", ErrInvalidArgument, value)
}
