package xla

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/probe"
)

const cpuDevices = "cpu_device_count"

// maxCPUDevices is over all processes: XLA's CPU attributes higher numbers to another process.
const maxCPUDevices = 2048

// The plugin accepts forcedFlag without effect.
const forcedFlag = "--xla_force_host_platform_device_count="

func forcedDevices(flags string) (n int64, err error) {
	n = 1
	for _, flag := range strings.Fields(flags) {
		number, ok := strings.CutPrefix(flag, forcedFlag)
		if !ok {
			continue
		}
		if n, err = strconv.ParseInt(number, 10, 64); err != nil || n < 1 || n > maxCPUDevices {
			return 0, fmt.Errorf("%w: %.100q: expected a whole number of devices from 1 to %d", probe.ErrFlags, flag, maxCPUDevices)
		}
	}
	return n, nil
}

// Known options; other versions may accept more.
var clientOptions = map[string][]string{
	CPU: {cpuDevices},
	CUDA: {"abort_collectives_on_failure", "allocator", "collective_memory_size", "enable_mock_nccl", "memory_fraction", "mock_gpu_topology",
		"node_id", "num_nodes", "partition_index", "platform_name", "preallocate", "should_stage_host_to_device_transfers", "use_tfrt_gpu_client", "visible_devices"},
}

// newClient refuses unknown options. An invented name tests whether a CPU plugin ignores them.
func newClient(library *pjrt.Plugin, plugin Plugin, options map[string]any, store pjrt.KeyValueStore) (*pjrt.Client, error) {
	known := clientOptions[plugin.Kind]
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 && plugin.Kind == CPU {
		careless, err := library.NewClient(map[string]any{"lazo_asks_whether_names_are_looked_at": true}, nil)
		if err == nil {
			return nil, errors.Join(unknownOption(unknown[0], plugin, known), careless.Close())
		}
	}
	made, err := library.NewClient(options, store)
	if len(unknown) > 0 && errors.Is(err, pjrt.ErrInvalidArgument) && strings.Contains(err.Error(), unknown[0]) {
		return nil, fmt.Errorf("%w: %w", unknownOption(unknown[0], plugin, known), err)
	}
	if err != nil {
		return nil, during(err, "open %s", plugin.Path)
	}
	return made, nil
}

func unknownOption(name string, plugin Plugin, known []string) error {
	text := fmt.Sprintf("xla: client option %q: %s: the plugin %s does not know it", name, plugin.Path, plugin.Kind)
	if len(known) > 0 {
		text += ": expected one of " + strings.Join(known, ", ")
	}
	return fmt.Errorf("%s: %w", text, ErrInvalidArgument)
}
