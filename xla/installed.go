package xla

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/internal/probe"
)

func installable(name string) bool { return slices.Contains(install.Kinds(), name) }

func installCommand(name string) string {
	return "go run github.com/lazo-ml/lazo/cmd/lazo install " + name
}

func findInstalled(name, root string, missing *NotFoundError) (Plugin, error) {
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
	return Plugin{Name: p.Kind, Kind: platform(p.Kind), Path: p.Path, Version: p.Version, API: p.API, Source: FromInstall, stamp: p.Stamp}
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

func installNow(ctx context.Context, name string, o *options, try func(context.Context, string) error) (Plugin, error) {
	o.progress(fmt.Sprintf("no PJRT plugin %q on this machine: installing it into %s", name, installFolder(name, o.root)))
	start := time.Now()
	p, err := install.Install(ctx, name, install.Options{Root: o.root, Probe: try})
	if err != nil {
		return Plugin{}, fmt.Errorf("xla: %w", err)
	}
	o.log.Info("xla: plugin installed", "plugin", name, "version", p.Version, "path", p.Path, "took", time.Since(start))
	return fromInstall(p), nil
}

// Probe checks the plugin at path in a child process: see install.Options.Probe.
func Probe(ctx context.Context, path string) error {
	_, err := probe.Run(ctx, path)
	return err
}
