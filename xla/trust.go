package xla

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/lazo-ml/lazo/internal/owners"
	"github.com/lazo-ml/lazo/xla/pjrt"
	"github.com/lazo-ml/lazo/xla/probe"
)

// identity tells whether a library is the file that was probed before.
type identity struct {
	Path           string
	Size, Modified int64 // bytes, Unix nanoseconds
	Device, Inode  uint64
	MinMinor       int // the API rule that it was held against
}

// probed is the record of a library that passed a probe.
type probed struct {
	File   identity
	Report probe.Report
}

// probeOnce probes a library that lazo did not install, unless the user's cache
// folder says that this very file passed before: a probe takes 0.1 seconds on a
// CPU and several on a GPU. Without a cache folder each call probes.
func probeOnce(ctx context.Context, path string) (probe.Report, error) {
	file, err := identityOf(path)
	if err != nil {
		return probe.Report{}, err
	}
	cache := cacheFile(path)
	if known, ok := readProbed(cache); ok && known.File == file {
		return known.Report, nil
	}
	report, err := probe.Run(ctx, path)
	if err != nil {
		return probe.Report{}, err
	}
	writeProbed(cache, probed{File: file, Report: report})
	return report, nil
}

func identityOf(path string) (identity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return identity{}, fmt.Errorf("xla: %w", err)
	}
	file := identity{Path: path, Size: info.Size(), Modified: info.ModTime().UnixNano(), MinMinor: pjrt.MinMinor}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		file.Device, file.Inode = uint64(sys.Dev), uint64(sys.Ino) // the types differ between systems
	}
	return file, nil
}

// cacheFile is where the record of the library at path lies, "" for nowhere.
func cacheFile(path string) string {
	dir, err := owners.Cache()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "lazo", "probe", fmt.Sprintf("%x.json", sha256.Sum256([]byte(path))))
}

func readProbed(name string) (known probed, ok bool) {
	data, err := owners.ReadFile(name)
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
