package xla

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/internal/aot"
	"github.com/lazo-ml/lazo/internal/install"
)

// ErrCompilerCrash reports that a compiler ended its child process ([OpenTopology]).
var ErrCompilerCrash = aot.ErrCrash

const compileTimeout = 10 * time.Minute

// CompileTimeout limits each compilation of [OpenTopology], by default to 10 minutes: longer is [ErrDeadline].
func CompileTimeout(limit time.Duration) Option {
	return func(o *options) {
		if limit <= 0 {
			o.err = fmt.Errorf("xla: compile timeout: expected more than 0, got %v", limit)
		}
		o.limit = limit
	}
}

// OpenTopology describes a machine for which programs are compiled but not run. plugin is [TPU], [CUDA] or a path,
// found as in [Open]. topology is, for a TPU, libtpu's generation and grid of chips, "v5e:4x4"; for CUDA a kind of
// [DeviceKinds], slices, hosts and devices per host, "h100:1x1x8".
//
// Strategies and states work on the runtime. A [Program] is compiled at its first use, and reports its Cost, Memory and
// Optimized form. Values have shapes only: reading one is [ErrNotRun].
//
// Each compilation loads the plugin in a child process, since compilers may end their process ([ErrCompilerCrash]) or
// take long ([CompileTimeout]). [CompileCache] keeps reports. [ClientOption] adds options such as libtpu's "num_slices"
// or CUDA's "target_config". See docs/maintain/targets.md.
func OpenTopology(ctx context.Context, plugin, topology string, opts ...Option) (*Runtime, error) {
	r, err := openTopology(ctx, plugin, topology, opts)
	if err != nil {
		return nil, during(err, "open the topology %q of %q", topology, plugin)
	}
	return r, nil
}

func openTopology(ctx context.Context, plugin, topology string, opts []Option) (*Runtime, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	start := time.Now()
	found, err := findCompiler(ctx, plugin, o)
	if err != nil {
		return nil, err
	}
	if found.Kind == "" {
		found.Kind = kindOf(found.Path)
	}
	d := &described{plugin: found, name: topology, log: o.log, limit: o.limit}
	if d.limit == 0 {
		d.limit = compileTimeout
	}
	if d.machine, err = machineOf(found, topology, o.client); err != nil {
		return nil, err
	}
	if d.about, err = d.machine.Describe(ctx, d.limit); err != nil {
		return nil, err
	}
	if len(d.about.Devices) == 0 {
		return nil, ErrNoDevice
	}
	d.plugin.API = d.about.API
	if found.Source != FromInstall {
		d.plugin.Kind = d.about.Platform
	}
	if o.cache != nil {
		if d.cache, err = o.cache.openDescribed(d, o.log); err != nil {
			return nil, err
		}
	}
	d.ctx, d.end = context.WithCancel(context.WithoutCancel(ctx))
	logOpened(o.log, d.plugin, len(d.about.Devices), start)
	d.runtime = &Runtime{Backend: d, plugin: d.plugin, log: o.log}
	return d.runtime, nil
}

// findCompiler accepts a CUDA plugin without the libraries for running.
func findCompiler(ctx context.Context, plugin string, o *options) (Plugin, error) {
	if plugin == Go || plugin == CPU {
		return Plugin{}, fmt.Errorf("%w: %q describes no machine: expected %q, %q or the path of such a plugin", ErrUnimplemented, plugin, TPU, CUDA)
	}
	found, err := find(plugin, o)
	var missing *NotFoundError
	if plugin != CUDA || !errors.As(err, &missing) {
		if o.install && errors.As(err, &missing) && installable(plugin) {
			return installNow(ctx, plugin, o, nil)
		}
		return found, err
	}
	small, err := install.Find(cudaCompile, o.root)
	switch {
	case err == nil:
		return fromInstall(small), nil
	case !errors.Is(err, install.ErrNotInstalled):
		return Plugin{}, installError(err, cudaCompile)
	case o.install:
		return installNow(ctx, cudaCompile, o, nil)
	}
	missing.Tried = append(missing.Tried, installFolder(cudaCompile, o.root)+" (lazo install: nothing there)")
	missing.Install = installCommand(cudaCompile)
	return Plugin{}, missing
}

func kindOf(path string) string {
	for _, kind := range []string{TPU, CUDA} {
		for _, pattern := range patterns(kind) {
			if ok, _ := filepath.Match(pattern, filepath.Base(path)); ok {
				return kind
			}
		}
	}
	return ""
}

const cudaCompile = "cuda_compile"

func machineOf(plugin Plugin, topology string, client map[string]any) (aot.Machine, error) {
	m := aot.Machine{Plugin: plugin.Path, Name: topology, Options: maps.Clone(client)}
	switch plugin.Kind {
	case TPU:
		return m, describeTPU(&m)
	case CUDA:
		return m, describeGPU(&m)
	}
	return m, nil
}

func describeTPU(m *aot.Machine) error {
	generation, grid, ok := strings.Cut(m.Name, ":")
	dims, err := gridOf(grid)
	if !ok || generation == "" || err != nil {
		return fmt.Errorf("%w: expected a generation and a grid of chips, as \"v5e:4x4\" or \"v5p:2x2x4\"", ErrInvalidArgument)
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

// DeviceKinds returns CUDA devices for [OpenTopology]. Others need the option "target_config": see [ClientOption].
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

func describeGPU(m *aot.Machine) error {
	const config = "target_config"
	parts := gpuTopology.FindStringSubmatch(m.Name)
	if parts == nil {
		return fmt.Errorf("%w: expected a kind of device and how many slices, hosts and devices of a host, as \"h100:1x1x8\"", ErrInvalidArgument)
	}
	if _, err := gridOf(parts[2]); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidArgument, err)
	}
	m.Options["topology"] = parts[2]
	if _, set := m.Options[config]; set {
		return nil
	}
	table := gpuTable()
	at := slices.IndexFunc(table, func(g gpu) bool { return g.kind == parts[1] })
	if at < 0 {
		return fmt.Errorf("%w: no device of the kind %q is known: expected one of %s, or a ClientOption(%q, …)",
			ErrInvalidArgument, parts[1], strings.Join(DeviceKinds(), ", "), config)
	}
	m.Options[config] = table[at].target()
	return nil
}

// Topology returns [OpenTopology]'s topology, "v5e:4x4"; "" after [Open].
func (r *Runtime) Topology() string {
	if d, ok := r.Backend.(*described); ok {
		return d.name
	}
	return ""
}

// Abstract makes a value of a described machine from its shape. It fails after [Open].
func (r *Runtime) Abstract(device compute.DeviceNum, shape shapes.Shape) (compute.Buffer, error) {
	d, ok := r.Backend.(*described)
	if !ok {
		return nil, fmt.Errorf("xla: abstract value of %s: %w: %v has real devices: use BufferFromFlatData", shape, ErrUnimplemented, r.plugin)
	}
	return d.put(device, shape)
}

// DeviceAttributes returns a device's attributes by the plugin's names ("coords"). Values are string, int64, []int64,
// float32 or bool.
func (r *Runtime) DeviceAttributes(n compute.DeviceNum) (map[string]any, error) {
	switch on := r.Backend.(type) {
	case *described:
		if err := on.device(n); err != nil {
			return nil, err
		}
		return maps.Clone(on.about.Devices[n].Attributes), nil
	case *client:
		d, err := on.device(n)
		if err != nil {
			return nil, err
		}
		attributes, err := d.Attributes()
		return attributes, WrapError(err)
	}
	return nil, fmt.Errorf("xla: attributes of a device: %w: %s has no devices of its own", ErrUnimplemented, r.plugin.Kind)
}

// PlatformVersion returns the plugin's version text, perhaps of several lines; "" for [Go].
func (r *Runtime) PlatformVersion() string {
	switch on := r.Backend.(type) {
	case *described:
		return on.about.PlatformVersion
	case *client:
		return on.client.PlatformVersion()
	}
	return ""
}

// openDescribed omits this machine's processors.
func (c *cache) openDescribed(d *described, log *slog.Logger) (*cache, error) {
	opened, err := c.folder(log)
	if err != nil {
		return nil, err
	}
	file, err := identityOf(d.plugin.Path)
	if err != nil {
		return nil, err
	}
	read, err := environmentOf(d.plugin.Path)
	if err != nil {
		return nil, err
	}
	opened.on = fmt.Sprintf("described\n%+v\n%v\n%q %v\n%v\n%s", file, read, d.machine.Name, d.machine.Options, d.machine.Environment, d.about.PlatformVersion)
	return opened, nil
}
