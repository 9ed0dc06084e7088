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

// identity tells whether a library is the file that was looked at before.
type identity struct {
	Path                    string
	Size, Modified, Changed int64 // bytes, Unix nanoseconds; no program can set the time of the last change back
	Device, Inode           uint64
	MinMinor                int // the API rule that it was held against
}

// probed is the record of a library that was whole and passed a probe.
type probed struct {
	File identity
	// Installed is the stamp of all files of a plugin that lazo installed.
	Installed string
	// Boot is the start of the machine since which no file had to be read from the disk again: what rots on it behind the
	// file system's back changes no time.
	Boot string
	// Reports are those of the options in the environment that it was probed with.
	Reports map[string]probe.Report
}

// optionsLimit is how many options of the environment are kept of a library.
const optionsLimit = 64

// probeOnce sees to it that a plugin can be opened here and now: that what lazo installed is whole, by its digests,
// once for each state of its files and each start of the machine; and that the plugin works, in a child process, once
// for each such state and each XLA_FLAGS. The records lie in the user's cache folder; without one, each call does both.
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

// boot names the start of the machine, "" where the system does not say it.
func boot() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(id)
}

// cacheFile is where the record of the library at path lies, "" for nowhere.
func cacheFile(path string) string {
	dir, err := owners.Cache()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "lazo", "probe", fmt.Sprintf("%x.json", sha256.Sum256([]byte(path))))
}

// probedLimit is more than the reports of all options that are kept of a library.
const probedLimit = 1 << 20

func readProbed(name string) (known probed, ok bool) {
	data, err := owners.ReadFile(name, probedLimit)
	return known, err == nil && json.Unmarshal(data, &known) == nil
}

// writeProbed does its best: a record that cannot be kept costs a probe next time.
func writeProbed(name string, record probed) {
	data, err := json.Marshal(record)
	if err != nil || name == "" || os.MkdirAll(filepath.Dir(name), 0o750) != nil {
		return
	}
	_ = writeWhole(name, data)
}

// writeWhole writes a file whole or not at all.
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
