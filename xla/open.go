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

	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/shield"
)

// Option is an option of [Open] and [Find].
type Option func(*options)

type options struct {
	root     string
	install  bool
	progress func(string)
	client   map[string]any
	cache    *cache
	programs int
	limit    time.Duration
	log      *slog.Logger
	job      Job
	store    Store
	err      error
}

// Root sets the folder of installed plugins, by default install.DefaultRoot.
func Root(dir string) Option {
	return func(o *options) { o.root = dir }
}

// InstallIfMissing lets Open install a missing plugin. progress receives lines for the user; it may be nil.
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

// Runtime is an opened plugin with its devices, a GoMLX backend. Goroutines may share it, its programs and values (see
// [Program]).
type Runtime struct {
	compute.Backend
	plugin Plugin
	log    *slog.Logger
	closed atomic.Bool
	uses   gate.Gate // for the Go backend: a PJRT client counts its users
}

var _ compute.Backend = (*Runtime)(nil)

// Open finds and opens a plugin, by the path of a library or a name: [CPU], [CUDA], [TPU], another plugin's, or [Go].
//
// A name is searched in $PJRT_PLUGIN_LIBRARY_PATH, then among installed plugins. A child process probes the plugin once
// per state of its file and XLA_FLAGS. ctx can end this and an installation.
//
// A plugin reads the environment once per process: XLA_FLAGS that it refuses, or that changed since, are [ErrFlags].
//
// Each call makes a client with its own device memory: on a GPU, open once. The library stays loaded. A CPU plugin
// keeps freed memory for later runs, at most as much as was in use at once, until a program or the runtime is closed.
//
// Without cgo, [CPU] opens [Go] and warns on slog's default logger; others are [ErrNoCgo]. In a statically linked
// program, all but [Go] are [ErrStatic].
//
// Under lazo plan, all but [Go] open the plan's described machine: see [ErrPlanned].
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
	if err := pjrt.CanLoad(); err != nil {
		return nil, fmt.Errorf("xla: open %q: %w; or open %q, GoMLX's backend in Go", plugin, err, Go)
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

var reportGo sync.Once

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
	return "", fmt.Errorf("xla: open %q: %w; or open %q, GoMLX's backend in Go", plugin, ErrNoCgo, Go)
}

func openGo(plugin Plugin, o *options) (*Runtime, error) {
	if len(o.client) > 0 {
		return nil, fmt.Errorf("xla: the plugin %q takes no client options", Go)
	}
	if o.job != nil && o.job.Size() > 1 {
		return nil, fmt.Errorf("xla: open %q across %d processes: %w: expected %q, %q or %q", Go, o.job.Size(), ErrUnimplemented, CPU, CUDA, TPU)
	}
	// In parallel, matrix products deadlock (docs/decisions/0024).
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
		// The plugin's default is four devices, even on two cores.
		if o.client[cpuDevices], err = forcedDevices(from.environment.flags); err != nil {
			return nil, fmt.Errorf("xla: open %s: %w", plugin.Path, err)
		}
	}
	if plugin.Kind == CPU {
		if err := library.KeepBlocks(); err != nil {
			o.log.Warn("xla: programs will be slower, each run allocates its memory again", "plugin", plugin.Name, "error", err)
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

// Plugin returns the opened plugin.
func (r *Runtime) Plugin() Plugin { return r.plugin }

// Logger returns the logger of [Log], never nil.
func (r *Runtime) Logger() *slog.Logger { return r.log }

// Description describes the plugin and its devices in one line.
func (r *Runtime) Description() string {
	return fmt.Sprintf("%v, %d device(s)", r.plugin, r.NumDevices())
}

// Devices describes each device of this process; none after Close.
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

// DeviceMemory returns a device's memory statistics. It is [ErrUnimplemented] without them, as on the CPU.
func (r *Runtime) DeviceMemory(n compute.DeviceNum) (DeviceMemory, error) {
	c, ok := r.Backend.(*client)
	if !ok {
		return DeviceMemory{}, fmt.Errorf("xla: memory of a device: %w: %s has no devices of its own", ErrUnimplemented, r.plugin.Kind)
	}
	d, err := c.device(n)
	if err != nil {
		return DeviceMemory{}, err
	}
	stats, err := d.MemoryStats()
	return DeviceMemory(stats), WrapError(err)
}

// Close waits for calls in progress and releases the client. Later use of its buffers and programs is [ErrClosed]. A
// second Close returns after the first.
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

// NumDevices counts the devices of all processes ([Across]), 0 after Close; a [compute.DeviceNum] is of this process.
func (r *Runtime) NumDevices() int {
	if r.closed.Load() {
		return 0
	}
	if a := r.across(); a != nil {
		return a.devices()
	}
	return r.Backend.NumDevices()
}

// IsFinalized reports whether Close was called.
func (r *Runtime) IsFinalized() bool { return r.closed.Load() }

// Builder starts a program.
func (r *Runtime) Builder(name string) compute.Builder {
	if r.closed.Load() {
		return closedBuilder{notimplemented.Builder{ErrFn: func(compute.OpType) error { return errClosed }}}
	}
	return r.Backend.Builder(name)
}

// BufferFromFlatData copies a slice to a device.
func (r *Runtime) BufferFromFlatData(device compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	if r.closed.Load() {
		return nil, errClosed // GoMLX's backend would dereference nil
	}
	return r.Backend.BufferFromFlatData(device, flat, shape)
}

type closedBuilder struct{ notimplemented.Builder }

func (closedBuilder) Compile() (compute.Executable, error) { return nil, errClosed }

func (closedBuilder) NewFunction(string) (compute.Function, error) { return nil, errClosed }
