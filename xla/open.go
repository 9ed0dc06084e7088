package xla

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/gomlx/compute/gobackend"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/planned"
	"github.com/lazo-ml/lazo/internal/probe"
	"github.com/lazo-ml/lazo/internal/shield"
)

// Open opens a plugin, by the path of a library or a name: [CPU], [CUDA], [TPU], another plugin's, or [Go].
//
// A name is searched in $PJRT_PLUGIN_LIBRARY_PATH, then among installed plugins: in [Root], else $LAZO_HOME, else
// lazo's folder in the home folder. A child process probes the plugin once per state of its file and XLA_FLAGS. ctx
// can end this and an installation.
//
// A plugin reads the environment once per process: XLA_FLAGS that it refuses, or that changed since, are an error.
//
// Each call makes a client with its own device memory: on a GPU, open once. The library stays loaded. A CPU plugin
// keeps freed memory for later runs, at most the most in use at once, until a program or the runtime is closed.
//
// Without cgo, [CPU] opens [Go] and warns on slog's default logger; others are an error, as are all but [Go] in a
// statically linked program.
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
	if plugin, err = withoutCgo(plugin, o, pjrt.Cgo); err != nil {
		return nil, err
	}
	tellApart(o)
	found, err := findPlugin(plugin, o)
	if o.install && errors.Is(err, ErrPluginNotFound) && installable(plugin) {
		found, err = installNow(ctx, plugin, o, probe.Check)
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
	if found.Source != sourceInstall {
		found.Kind = report.Platform
	}
	return loadPlugin(found, o)
}

// openPlanned opens lazo plan's machine, if any, and ignores options.
func openPlanned(ctx context.Context, plugin string) (*Runtime, error) {
	value, set := os.LookupEnv(planned.Variable)
	if !set || plugin == Go {
		return nil, nil
	}
	order, err := planned.ParseOrder(value)
	if err != nil {
		return nil, fmt.Errorf("xla: open %q: %w", plugin, err)
	}
	r, err := OpenTopology(ctx, order.Plugin, order.Topology, Root(order.Root))
	if err != nil {
		return nil, err
	}
	r.Backend.(*described).planned = order.File
	return r, nil
}

func withoutCgo(plugin string, o *openOptions, cgo bool) (string, error) {
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
	if _, err := findPlugin(plugin, o); err != nil && !installable(plugin) {
		return "", err // with cgo it would be missing too
	}
	return "", fmt.Errorf("xla: open %q: %w; or open %q, GoMLX's backend in Go", plugin, pjrt.ErrNoCgo, Go)
}

var reportGo sync.Once

func openGo(plugin Plugin, o *openOptions) (*Runtime, error) {
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

func loadPlugin(plugin Plugin, o *openOptions) (*Runtime, error) {
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
	var turns chan struct{}
	if plugin.Kind == CPU {
		if err := library.KeepBlocks(); err != nil {
			o.log.Warn("xla: programs will be slower, each run allocates its memory again", "plugin", plugin.Name, "error", err)
		}
		if err := library.RunInline(); err != nil {
			o.log.Info("xla: a thread of the plugin runs the programs, one at a time", "plugin", plugin.Name, "error", err)
		} else {
			turns = make(chan struct{}, runtime.GOMAXPROCS(0))
		}
	}
	across, err := newAcross(library, plugin, o)
	if err != nil {
		return nil, err
	}
	made, err := across.open(library, plugin, o.client)
	if err == nil {
		err = across.alike(plugin, from.environment.flags)
	}
	if err != nil {
		if made != nil {
			err = errors.Join(err, made.Close())
		}
		return nil, err
	}
	devices := made.AddressableDevices()
	if len(devices) == 0 {
		return nil, errors.Join(fmt.Errorf("xla: open %s: %w", plugin.Path, ErrNoDevice), made.Close())
	}
	c := &pjrtClient{plugin: plugin, client: made, devices: devices, across: across, log: o.log, turns: turns}
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
