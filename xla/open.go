package xla

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/internal/shield"
	"github.com/lazo-ml/lazo/xla/pjrt"
)

// Option changes what [Open] and [Find] do.
type Option func(*options)

type options struct {
	root     string
	install  bool
	progress func(string)
	client   map[string]any
	cache    *cache
	programs int           // how many are kept, see KeepPrograms
	limit    time.Duration // see CompileTimeout
	log      *slog.Logger
	job      *dist.Job  // see Across
	store    dist.Store // see WithStore
	err      error
}

// Root sets the folder that plugins are installed into, in place of
// install.DefaultRoot.
func Root(dir string) Option {
	return func(o *options) { o.root = dir }
}

// InstallIfMissing lets Open download and install the plugin if it is found
// nowhere. progress, which may be nil, is called with lines for the user.
func InstallIfMissing(progress func(line string)) Option {
	return func(o *options) { o.install, o.progress = true, progress }
}

func newOptions(opts []Option) (*options, error) {
	o := &options{client: map[string]any{}, progress: func(string) {}, programs: idlePrograms, log: slog.New(slog.DiscardHandler)}
	if linkedCache != "" {
		CompileCache(linkedCache, 0)(o)
	}
	for _, apply := range opts {
		if apply != nil {
			apply(o)
		}
	}
	if o.progress == nil {
		o.progress = func(string) {}
	}
	if o.store != nil && o.job == nil && o.err == nil {
		o.err = errors.New("xla: WithStore is for the processes of a job: give Across too")
	}
	return o, o.err
}

// Runtime is a client of an opened plugin, and a GoMLX backend. It may be used by any number of goroutines, and so may
// the programs and the values that are made with it; a program has what it replaces alone (see [Program]). Close waits
// for the calls that are under way, and later use is [ErrClosed].
type Runtime struct {
	compute.Backend
	plugin Plugin
	log    *slog.Logger
	closed atomic.Bool
	uses   gate.Gate // entered for the Go backend alone: a PJRT client counts its users itself
}

var _ compute.Backend = (*Runtime)(nil)

// Open finds a plugin and makes a client of it. plugin is the path of a library,
// or a name: [CPU], [CUDA], [TPU], another plugin's name, or [Go].
//
// A name is looked for in the folders of $PJRT_PLUGIN_LIBRARY_PATH, then among
// the plugins that lazo installed. A plugin is first probed in a child process,
// once for each state of its file and each XLA_FLAGS; what lazo installed has its digests checked again when its files
// look changed, and once after each start of the machine. That, and an
// installation, are what ctx can end.
//
// A plugin reads the environment when the process opens it first. XLA_FLAGS
// that it does not take, or that changed since, are an error: [ErrFlags].
//
// Each call makes a client of its own, with its own devices' memory: on a GPU,
// open once. The library itself is loaded once and stays loaded.
//
// A plugin for the CPU keeps the memory that a program's run has used for the next run, up to as much again as is in
// use at once; it is given back when a program or the runtime is closed ([pjrt.Plugin.KeepBlocks]).
//
// In a program that was built without cgo, [CPU] opens [Go], and a line on slog's default logger reports that; any
// other plugin is [pjrt.ErrNoCgo].
//
// Under lazo plan it gives the described machine that is planned for, whatever plugin but [Go] is named: see
// [ErrPlanned].
func Open(ctx context.Context, plugin string, opts ...Option) (*Runtime, error) {
	if err := shield.Context(ctx); err != nil {
		return nil, fmt.Errorf("xla: open %q: %w", plugin, err)
	}
	if r, err := openPlanned(ctx, plugin); r != nil || err != nil {
		return r, err
	}
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	if plugin, err = withoutCgo(plugin, pjrt.Cgo); err != nil {
		return nil, err
	}
	tellApart(o)
	found, err := find(plugin, o)
	if o.install && errors.Is(err, ErrPluginNotFound) && installable(plugin) {
		found, err = installNow(ctx, plugin, o, Probe)
	}
	if err != nil {
		return nil, err
	}
	if found.Kind == Go {
		return openGo(found, o)
	}
	report, err := probeOnce(ctx, found, o.root)
	if err != nil {
		return nil, fmt.Errorf("xla: open %q: %w", plugin, err)
	}
	if found.Source != FromInstall {
		found.Kind = report.Platform
	}
	return load(found, o)
}

// reportGo makes that line one for each process.
var reportGo sync.Once

// withoutCgo returns the plugin to open where the program may have been built without cgo. Plugins need cgo, so [CPU]
// is [Go] there, and one line on slog's default logger reports it.
func withoutCgo(plugin string, cgo bool) (string, error) {
	switch {
	case cgo || plugin == Go:
		return plugin, nil
	case platform(plugin) == CPU:
		reportGo.Do(func() {
			slog.Warn("xla: this program was built without cgo: GoMLX's Go backend runs it, several times slower than XLA; build it with CGO_ENABLED=1 and a C compiler for XLA",
				"plugin", plugin)
		})
		return Go, nil
	}
	return "", fmt.Errorf("xla: open %q: %w; or open %q, GoMLX's backend in Go", plugin, pjrt.ErrNoCgo, Go)
}

func openGo(plugin Plugin, o *options) (*Runtime, error) {
	if len(o.client) > 0 {
		return nil, fmt.Errorf("xla: the plugin %q takes no client options", Go)
	}
	if o.job != nil && o.job.Size() > 1 {
		return nil, fmt.Errorf("xla: open %q across %d processes: %w: expected %q, %q or %q", Go, o.job.Size(), ErrUnimplemented, CPU, CUDA, TPU)
	}
	// One operation at a time: in parallel, products of matrices wait for workers of a pool that such waiting products
	// have filled, for ever (seen on two cores).
	start := time.Now()
	backend, err := gobackend.New("ops_sequential")
	if err != nil {
		return nil, fmt.Errorf("xla: open %q: %w", Go, err)
	}
	logOpened(o.log, plugin, int(backend.NumDevices()), start)
	r := &Runtime{plugin: plugin, log: o.log}
	r.Backend = &plainGo{backend, r}
	return r, nil
}

// load makes the client, in this process.
func load(plugin Plugin, o *options) (*Runtime, error) {
	start := time.Now()
	for name, value := range pjrt.Environment(plugin.Path, os.Getenv) {
		if err := os.Setenv(name, value); err != nil {
			return nil, fmt.Errorf("xla: set %s: %w", name, err)
		}
	}
	from, err := originOf(plugin.Path)
	if err != nil {
		return nil, fmt.Errorf("xla: open %s: %w", plugin.Path, err)
	}
	library, err := pjrt.Load(plugin.Path)
	if err != nil {
		return nil, during(err, "load %s", plugin.Path)
	}
	plugin.API = library.Version().String()
	if _, set := o.client[cpuDevices]; plugin.Kind == CPU && !set {
		// The plugin's own default is four devices, and a thread for each of them to work in, also on two cores.
		if o.client[cpuDevices], err = forcedDevices(from.environment.flags); err != nil {
			return nil, fmt.Errorf("xla: open %s: %w", plugin.Path, err)
		}
	}
	if plugin.Kind == CPU {
		if err := library.KeepBlocks(); err != nil {
			o.log.Warn("xla: programs will be slower, each run takes its memory anew", "plugin", plugin.Name, "error", err)
		}
	}
	across, err := newAcross(library, plugin, o)
	if err != nil {
		return nil, err
	}
	made, err := across.open(library, plugin, o.client)
	if err != nil {
		return nil, err
	}
	devices := made.AddressableDevices()
	if len(devices) == 0 {
		return nil, errors.Join(fmt.Errorf("xla: open %s: %w", plugin.Path, ErrNoDevice), made.Close())
	}
	c := &client{plugin: plugin, client: made, devices: devices, across: across, log: o.log}
	c.shared.keep = o.programs
	if plugin.Kind == CUDA {
		about, err := devices[0].Attributes()
		if err != nil {
			return nil, errors.Join(during(err, "open %s", plugin.Path), made.Close())
		}
		c.widestHead = widestHead(about["compute_capability"])
	}
	if o.cache != nil {
		if c.cache, err = o.cache.open(from, made, o.client, o.log); err != nil {
			return nil, errors.Join(err, made.Close())
		}
	}
	logOpened(o.log, plugin, len(devices), start)
	c.runtime = &Runtime{Backend: c, plugin: plugin, log: o.log}
	return c.runtime, nil
}

// Plugin says which plugin this is and where it came from.
func (r *Runtime) Plugin() Plugin { return r.plugin }

// Logger is where what uses the runtime logs: what [Log] set, or one that discards all.
func (r *Runtime) Logger() *slog.Logger { return r.log }

// Description is one line about the plugin and its devices.
func (r *Runtime) Description() string {
	return fmt.Sprintf("%v, %d device(s)", r.plugin, r.NumDevices())
}

// Devices describes each device of this process, in the order of their numbers. It is empty
// after Close.
func (r *Runtime) Devices() []string {
	if r.closed.Load() {
		return nil
	}
	described := make([]string, r.Backend.NumDevices())
	for i := range described {
		described[i] = r.DeviceDescription(compute.DeviceNum(i))
	}
	return described
}

// DeviceMemory asks for the state of a device's memory. It fails with [ErrUnimplemented] where the plugin keeps no
// count, as that of the CPU.
func (r *Runtime) DeviceMemory(n compute.DeviceNum) (pjrt.MemoryStats, error) {
	c, ok := r.Backend.(*client)
	if !ok {
		return pjrt.MemoryStats{}, fmt.Errorf("xla: memory of a device: %w: %s has no devices of its own", ErrUnimplemented, r.plugin.Kind)
	}
	d, err := c.device(n)
	if err != nil {
		return pjrt.MemoryStats{}, err
	}
	stats, err := d.MemoryStats()
	return stats, WrapError(err)
}

// Close waits for the calls that are under way, and releases the client. Buffers and programs made with it are of no
// use any more, and say so ([ErrClosed]). A second Close does nothing, and returns after the first.
func (r *Runtime) Close() error {
	r.closed.Store(true)
	return r.uses.Close(func() error {
		if on, ok := r.Backend.(*client); ok {
			return on.close()
		}
		r.Backend.Finalize()
		return nil
	})
}

// Finalize is GoMLX's name for [Runtime.Close].
func (r *Runtime) Finalize() { _ = r.Close() }

// NumDevices is the number of devices, of all processes ([Across]), 0 after Close. The numbers that values are put to
// ([compute.DeviceNum]) count those of this process alone.
func (r *Runtime) NumDevices() int {
	if r.closed.Load() {
		return 0
	}
	if a := r.across(); a != nil {
		return a.devices()
	}
	return r.Backend.NumDevices()
}

// IsFinalized tells whether Close was called.
func (r *Runtime) IsFinalized() bool { return r.closed.Load() }

// Builder starts a new program. After Close every operation of the builder, and
// its compilation, fail with [ErrClosed].
func (r *Runtime) Builder(name string) compute.Builder {
	if r.closed.Load() {
		return closedBuilder{notimplemented.Builder{ErrFn: func(compute.OpType) error { return errClosed }}}
	}
	return r.Backend.Builder(name)
}

// BufferFromFlatData copies a slice to a device. After Close it fails with [ErrClosed].
func (r *Runtime) BufferFromFlatData(device compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	if r.closed.Load() {
		return nil, errClosed // GoMLX's own backend would dereference nil here
	}
	return r.Backend.BufferFromFlatData(device, flat, shape)
}

type closedBuilder struct{ notimplemented.Builder }

func (closedBuilder) Compile() (compute.Executable, error) { return nil, errClosed }

func (closedBuilder) NewFunction(string) (compute.Function, error) { return nil, errClosed }
