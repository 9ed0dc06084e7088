package pjrt

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/lazo-ml/lazo/internal/owners"
)

// Environment gives the variables to set before the plugin at path is loaded.
// A value that the user has set, as seen through getenv, is kept.
//
//   - TF_CPP_MIN_LOG_LEVEL=2: errors only; XLA's start-up chatter goes to stderr.
//   - XLA_FLAGS: for a CUDA plugin, where ptxas and libdevice lie beside it.
func Environment(path string, getenv func(string) string) map[string]string {
	set := map[string]string{}
	const level = "TF_CPP_MIN_LOG_LEVEL"
	if getenv(level) == "" {
		set[level] = "2"
	}
	const flag = "--xla_gpu_cuda_data_dir"
	if flags := getenv("XLA_FLAGS"); !strings.Contains(flags, flag) {
		if dir := cudaDataDir(path); dir != "" {
			set["XLA_FLAGS"] = strings.TrimSpace(flags + " " + flag + "=" + dir)
		}
	}
	return set
}

// cudaDataDir finds the folder with nvvm/libdevice near a CUDA plugin, "" if
// there is none: CUDA's wheels put it in nvidia/cu13 or nvidia/cuda_nvcc, beside
// the plugin or up to two levels above. XLA runs the programs in there, so others' do not count.
func cudaDataDir(path string) string {
	if !strings.Contains(strings.ToLower(filepath.Base(path)), "cuda") {
		return ""
	}
	for dir, level := filepath.Dir(path), 0; level < 3; dir, level = filepath.Dir(dir), level+1 {
		found, err := filepath.Glob(filepath.Join(dir, "nvidia", "*", "nvvm", "libdevice"))
		if err != nil || len(found) == 0 {
			continue
		}
		cuda := filepath.Dir(filepath.Dir(found[0]))
		if _, err := owners.Resolve(filepath.Join(cuda, "bin", "ptxas")); err == nil || errors.Is(err, fs.ErrNotExist) {
			return cuda
		}
	}
	return ""
}
