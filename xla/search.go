package xla

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/internal/owners"
)

// Find finds a plugin without loading it: see [Open]. It uses only [Root]. A missing plugin is [ErrPluginNotFound], one
// that others may change [ErrPluginInsecure] (docs/security.md).
func Find(plugin string, opts ...Option) (Plugin, error) {
	o, err := newOptions(opts)
	if err != nil {
		return Plugin{}, err
	}
	return findPlugin(plugin, o)
}

func findPlugin(plugin string, o *openOptions) (Plugin, error) {
	switch {
	case plugin == Go:
		return Plugin{Name: Go, Kind: Go, Source: sourceBuiltIn}, nil
	case strings.ContainsAny(plugin, `/\`) || filepath.Ext(plugin) != "":
		return findPath(plugin)
	case !pluginName.MatchString(plugin):
		return Plugin{}, fmt.Errorf("xla: plugin %q is neither a name (%s, %s, %s, %s) nor the path of a library",
			plugin, CPU, CUDA, TPU, Go)
	}
	missing := &notFoundError{Plugin: plugin}
	if path, err := searchPath(plugin, missing); err != nil || path != "" {
		return Plugin{Name: plugin, Kind: platform(plugin), Path: path, Source: sourceSearch}, err
	}
	if !installable(plugin) {
		return Plugin{}, missing
	}
	missing.Install = installCommand(plugin)
	return findInstalled(plugin, o.root, missing)
}

func findPath(path string) (Plugin, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return Plugin{}, fmt.Errorf("xla: plugin %q: %w", path, err)
	}
	// The plugin finds other libraries from its real folder. Whoever can change it or a link could run code.
	resolved, err := owners.Resolve(absolute)
	if errors.Is(err, os.ErrNotExist) {
		return Plugin{}, &notFoundError{Plugin: path, Tried: []string{absolute}}
	}
	if err != nil {
		return Plugin{}, fmt.Errorf("xla: plugin %q: %w", path, err)
	}
	return Plugin{Path: resolved, Source: sourcePath}, nil
}

// patterns identify plugins without running their constructors.
func patterns(name string) []string {
	stems := []string{
		"pjrt_c_api_" + name + "_*plugin*", "pjrt_plugin_" + name, "pjrt-plugin-" + name,
		"xla_" + name + "_pjrt", "xla_" + name + "_plugin", "libpjrt_" + name,
	}
	if name == TPU {
		stems = append(stems, "libtpu")
	}
	var all []string
	for _, stem := range stems {
		all = append(all, stem+".so")
		if runtime.GOOS == "darwin" {
			all = append(all, stem+".dylib")
		}
	}
	return all
}

// A match that others may change is an error.
func searchPath(name string, missing *notFoundError) (string, error) {
	folders := filepath.SplitList(os.Getenv(searchPathVariable))
	if len(folders) == 0 {
		missing.Tried = append(missing.Tried, "$"+searchPathVariable+" (not set)")
	}
	for _, folder := range folders {
		if folder == "" {
			continue
		}
		missing.Tried = append(missing.Tried,
			fmt.Sprintf("%s and like names ($%s)", filepath.Join(folder, patterns(name)[0]), searchPathVariable))
		for _, pattern := range patterns(name) {
			matches, err := filepath.Glob(filepath.Join(folder, pattern))
			if err != nil || len(matches) == 0 {
				continue
			}
			found, err := findPath(matches[0])
			if err == nil || !errors.Is(err, ErrPluginNotFound) { // a link may lead nowhere
				return found.Path, err
			}
		}
	}
	return "", nil
}

func installable(name string) bool { return slices.Contains(install.Kinds(), name) }

func installCommand(name string) string {
	return "go run github.com/lazo-ml/lazo/cmd/lazo install " + name
}

func findInstalled(name, root string, missing *notFoundError) (Plugin, error) {
	found, err := install.Find(name, root)
	if name == CUDA && errors.Is(err, install.ErrNotInstalled) {
		if older, olderErr := install.Find("cuda12", root); olderErr == nil {
			found, err = older, nil
		}
	}
	switch {
	case errors.Is(err, install.ErrNotInstalled):
		missing.Tried = append(missing.Tried, installFolder(name, root)+" (lazo install: nothing there)")
		return Plugin{}, missing
	case err != nil:
		return Plugin{}, fmt.Errorf("xla: %w", installError(err, name))
	}
	return fromInstall(found), nil
}

func installError(err error, name string) error {
	if errors.Is(err, install.ErrDamaged) {
		return fmt.Errorf("%w: %w: to repair it: %s", ErrPluginDamaged, err, installCommand(name))
	}
	return err
}

func fromInstall(p install.Plugin) Plugin {
	return Plugin{Name: p.Kind, Kind: platform(p.Kind), Path: p.Path, Version: p.Version, API: p.API, Source: sourceInstall, stamp: p.Stamp}
}

func installFolder(name, root string) string {
	if root == "" {
		var err error
		if root, err = install.DefaultRoot(); err != nil {
			return err.Error()
		}
	}
	return filepath.Join(root, name)
}

func installNow(ctx context.Context, name string, o *openOptions, try func(context.Context, string) error) (Plugin, error) {
	o.progress(fmt.Sprintf("no PJRT plugin %q on this machine: installing it into %s", name, installFolder(name, o.root)))
	start := time.Now()
	p, err := install.Install(ctx, name, install.Options{Root: o.root, Probe: try, Progress: asLines(o.progress)})
	if err != nil {
		return Plugin{}, fmt.Errorf("xla: %w", err)
	}
	o.log.Info("xla: plugin installed", "plugin", name, "version", p.Version, "path", p.Path, "took", time.Since(start))
	return fromInstall(p), nil
}

// asLines reports each file's size, each tenth of its download, and the other stages that take time.
func asLines(say func(string)) func(install.Event) {
	var last install.Event
	return func(e install.Event) {
		begins := e.Stage != last.Stage || e.File != last.File
		switch {
		case e.Stage == install.Download && e.Total <= 0:
			if begins {
				say("download " + e.File)
			}
		case e.Stage == install.Download:
			if begins || e.Done*10/e.Total > last.Done*10/e.Total {
				say(fmt.Sprintf("download %s: %3d %% of %.1f MB", e.File, e.Done*100/e.Total, float64(e.Total)/1e6))
			}
		case e.Stage == install.Wait:
			say("wait for another installation, which holds " + e.File)
		case begins && e.Stage != install.Resolve:
			say(string(e.Stage) + " " + filepath.Base(e.File))
		}
		last = e
	}
}
