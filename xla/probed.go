package xla

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/internal/owners"
	"github.com/lazo-ml/lazo/internal/probe"
)

type probed struct {
	File identity
	// Installed is the stamp of an installed plugin.
	Installed string
	// Corruption on disk changes no file time.
	Boot    string
	Reports map[string]probe.Report
}

const optionsLimit = 64

// probeOnce verifies an installed plugin once per file state and boot, and probes it per options; without a user's
// cache, each time.
func probeOnce(ctx context.Context, plugin Plugin, root string) (probe.Report, error) {
	file, err := identityOf(plugin.Path)
	if err != nil {
		return probe.Report{}, err
	}
	env, err := environmentOf(plugin.Path)
	if err != nil {
		return probe.Report{}, err
	}
	options := env.options()
	cache := cacheFile(plugin.Path)
	now := probed{File: file, Installed: plugin.stamp, Boot: boot()}
	known, ok := readProbed(cache)
	if ok = ok && known.File == now.File && known.Installed == now.Installed && known.Boot == now.Boot; ok {
		if report, probed := known.Reports[options]; probed {
			return report, nil
		}
		now.Reports = known.Reports
	}
	if !ok && plugin.Source == sourceInstall {
		if _, err := install.Check(ctx, plugin.Name, root); err != nil {
			return probe.Report{}, installError(err, plugin.Name)
		}
	}
	report, err := probe.Run(ctx, plugin.Path)
	if err != nil {
		return probe.Report{}, err
	}
	if len(now.Reports) >= optionsLimit || now.Reports == nil {
		now.Reports = map[string]probe.Report{}
	}
	now.Reports[options] = report
	writeProbed(cache, now)
	return report, nil
}

func boot() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(id)
}

func cacheFile(path string) string {
	dir, err := owners.Cache()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "lazo", "probe", fmt.Sprintf("%x.json", sha256.Sum256([]byte(path))))
}

const probedLimit = 1 << 20

func readProbed(name string) (known probed, ok bool) {
	data, err := owners.ReadFile(name, probedLimit)
	return known, err == nil && json.Unmarshal(data, &known) == nil
}

// writeProbed ignores errors, which cost a later probe.
func writeProbed(name string, record probed) {
	data, err := json.Marshal(record)
	if err != nil || name == "" || os.MkdirAll(filepath.Dir(name), 0o750) != nil {
		return
	}
	_ = writeWhole(name, data)
}
