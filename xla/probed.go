package xla

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lazo-ml/lazo/internal/owners"
	"github.com/lazo-ml/lazo/xla/install"
	"github.com/lazo-ml/lazo/xla/probe"
)

// identity identifies a state of a library's file.
type identity struct {
	Path                    string
	Size, Modified, Changed int64 // bytes, Unix ns; programs cannot set Changed back
	Device, Inode           uint64
	MinMinor                int // API rule that it was checked against
}

// probed records a library that passed its checks.
type probed struct {
	File identity
	// Installed is the stamp of an installed plugin's files.
	Installed string
	// Boot is the machine's boot: later corruption on disk changes no file time.
	Boot string
	// Reports are by options of the environment.
	Reports map[string]probe.Report
}

// optionsLimit limits probed.Reports.
const optionsLimit = 64

// probeOnce verifies the digests of an installed plugin, once per file state and boot, and probes it, also once per
// options of the environment. Without a user's cache folder it does so each time.
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
	if !ok && plugin.Source == FromInstall {
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

// boot returns "" if unknown.
func boot() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(id)
}

// cacheFile returns a library's record file, or "".
func cacheFile(path string) string {
	dir, err := owners.Cache()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "lazo", "probe", fmt.Sprintf("%x.json", sha256.Sum256([]byte(path))))
}

// probedLimit exceeds optionsLimit reports.
const probedLimit = 1 << 20

func readProbed(name string) (known probed, ok bool) {
	data, err := owners.ReadFile(name, probedLimit)
	return known, err == nil && json.Unmarshal(data, &known) == nil
}

// writeProbed ignores errors: they cost a probe later.
func writeProbed(name string, record probed) {
	data, err := json.Marshal(record)
	if err != nil || name == "" || os.MkdirAll(filepath.Dir(name), 0o750) != nil {
		return
	}
	_ = writeWhole(name, data)
}

// writeWhole writes a file atomically.
func writeWhole(name string, parts ...[]byte) error {
	temp, err := os.CreateTemp(filepath.Dir(name), ".lazo-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // fails after the rename
	for _, part := range parts {
		if err == nil {
			_, err = temp.Write(part)
		}
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), name)
}
