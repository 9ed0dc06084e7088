package aot

import (
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

// Named returns the machine of a topology's name, for libraries of the kinds "tpu" ("v5e:4x4") and "cuda"
// ("h100:1x1x8"); options are added to its own.
func Named(plugin, kind, name string, options map[string]any) (Machine, error) {
	m := Machine{Plugin: plugin, Name: name, Options: maps.Clone(options)}
	switch kind {
	case "tpu":
		return m, describeTPU(&m)
	case "cuda":
		return m, describeGPU(&m)
	}
	return m, nil
}

func describeTPU(m *Machine) error {
	generation, grid, ok := strings.Cut(m.Name, ":")
	dims, err := gridOf(grid)
	if !ok || generation == "" || err != nil {
		return fmt.Errorf("%w: expected a generation and a grid of chips, as \"v5e:4x4\" or \"v5p:2x2x4\"", pjrt.ErrInvalidArgument)
	}
	m.Environment = append(m.Environment,
		"TPU_SKIP_MDS_QUERY=1", "TPU_WORKER_HOSTNAMES=localhost", "TPU_WORKER_ID=0", "ALLOW_MULTIPLE_LIBTPU_LOAD=1",
		fmt.Sprintf("TPU_ACCELERATOR_TYPE=%s-%d", generation, product(dims)))
	const perHost = "chips_per_host_bounds"
	if _, set := m.Options[perHost]; !set && product(dims) < chipsOfHost {
		// libtpu assumes at least four chips per host.
		bounds := []int64{1, 1, 1}
		copy(bounds, dims)
		m.Options[perHost] = bounds
	}
	return nil
}

const chipsOfHost = 4

func gridOf(text string) (dims []int64, err error) {
	for _, part := range strings.Split(text, "x") {
		n, err := strconv.ParseInt(part, 10, 32)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("grid %q: %q is not a number of 1 or more", text, part)
		}
		dims = append(dims, n)
	}
	if len(dims) > 3 {
		return nil, fmt.Errorf("grid %q has more than three axes", text)
	}
	return dims, nil
}

func product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}

//go:embed gpus.tsv
var gpus string

type gpu struct {
	kind, name   string
	major, minor int
	fields       []string
}

func gpuTable() (table []gpu) {
	for _, line := range strings.Split(gpus, "\n") {
		if f := strings.Split(line, "\t"); len(f) == 12 && !strings.HasPrefix(line, "#") {
			g := gpu{kind: f[0], name: f[1], fields: f[3:]}
			_, _ = fmt.Sscanf(f[2], "%d.%d", &g.major, &g.minor) // a test checks the table
			table = append(table, g)
		}
	}
	return table
}

// DeviceKinds returns the CUDA devices that [Named] knows. Others need the option "target_config".
func DeviceKinds() (kinds []string) {
	for _, g := range gpuTable() {
		kinds = append(kinds, g.kind)
	}
	return kinds
}

func (g gpu) target() string {
	f := g.fields
	feature := "NONE"
	if g.major >= 9 {
		feature = "ACCELERATED_FEATURES"
	}
	return fmt.Sprintf(`gpu_device_info {
  cuda_compute_capability { major: %d minor: %d feature_extension: %s }
  core_count: %s fpus_per_core: %s clock_rate_ghz: %s
  device_memory_size: %s memory_bandwidth: %s l2_cache_size: %s
  shared_memory_per_core: %s shared_memory_per_block_optin: %s shared_memory_per_block: 49152
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64
  device_vendor: "NVIDIA Corporation" name: %q
  device_interconnect_info { active_links: %s }
}
platform_name: "CUDA"
device_description_str: %q
`, g.major, g.minor, feature, f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], g.name, f[8], g.name)
}

var gpuTopology = regexp.MustCompile(`^([^:]+):(\d+x\d+x\d+)$`)

func describeGPU(m *Machine) error {
	const config = "target_config"
	parts := gpuTopology.FindStringSubmatch(m.Name)
	if parts == nil {
		return fmt.Errorf("%w: expected a kind of device and how many slices, hosts and devices of a host, as \"h100:1x1x8\"", pjrt.ErrInvalidArgument)
	}
	if _, err := gridOf(parts[2]); err != nil {
		return fmt.Errorf("%w: %w", pjrt.ErrInvalidArgument, err)
	}
	m.Options["topology"] = parts[2]
	if _, set := m.Options[config]; set {
		return nil
	}
	table := gpuTable()
	at := slices.IndexFunc(table, func(g gpu) bool { return g.kind == parts[1] })
	if at < 0 {
		return fmt.Errorf("%w: no device of the kind %q is known: expected one of %s, or a ClientOption(%q, …)",
			pjrt.ErrInvalidArgument, parts[1], strings.Join(DeviceKinds(), ", "), config)
	}
	m.Options[config] = table[at].target()
	return nil
}
