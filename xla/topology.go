package xla

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/lazo-ml/lazo/internal/aot"
	"github.com/lazo-ml/lazo/internal/install"
)

const compileTimeout = 10 * time.Minute

// OpenTopology describes a machine for which programs are compiled, not run. plugin is [TPU], [CUDA] or a path, found
// as in [Open]. topology is, for a TPU, libtpu's generation and grid of chips, "v5e:4x4"; for CUDA a kind, "a100" or
// "h100", slices, hosts and devices per host, "h100:1x1x8".
//
// Strategies and states work on the runtime. A [Program] is compiled at its first use, and reports its Cost, Memory
// and Optimized form. Values have shapes only: reading one is [ErrNotRun].
//
// Each compilation loads the plugin in a child process: compilers may end their process or take long
// ([CompileTimeout]). [CompileCache] keeps reports. [ClientOption] adds options like libtpu's "num_slices" or CUDA's
// "target_config". See docs/maintain/targets.md.
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
	if d.machine, err = aot.Named(found.Path, found.Kind, topology, o.client); err != nil {
		return nil, err
	}
	if d.about, err = d.machine.Describe(ctx, d.limit); err != nil {
		return nil, err
	}
	if len(d.about.Devices) == 0 {
		return nil, ErrNoDevice
	}
	d.plugin.API = d.about.API
	if found.Source != sourceInstall {
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
func findCompiler(ctx context.Context, plugin string, o *openOptions) (Plugin, error) {
	if plugin == Go || plugin == CPU {
		return Plugin{}, fmt.Errorf("%w: %q describes no machine: expected %q, %q or the path of such a plugin", ErrUnimplemented, plugin, TPU, CUDA)
	}
	found, err := findPlugin(plugin, o)
	var missing *notFoundError
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
