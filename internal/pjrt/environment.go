package pjrt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lazo-ml/lazo/internal/owners"
)

// Environment returns the variables to set before loading the plugin at path. It keeps the user's values, read by
// getenv.
//
//   - TF_CPP_MIN_LOG_LEVEL=2 limits XLA's log on stderr to errors, which calls return too; 3, for CPU plugins, to fatal
//     ones: PJRT API 0.106 logs errors about processor features for cached programs.
//   - XLA_FLAGS has the folder of ptxas and libdevice, if it is next to a CUDA plugin.
//   - TPU_SKIP_MDS_QUERY=1 and TPU_WORKER_HOSTNAMES=localhost spare libtpu minutes of queries to the cloud's metadata
//     server if there is no TPU.
func Environment(path string, getenv func(string) string) map[string]string {
	return environment("/", path, getenv)
}

func environment(root, path string, getenv func(string) string) map[string]string {
	set := map[string]string{}
	if strings.Contains(filepath.Base(path), "libtpu") && !mayHaveTPU(root) {
		for name, value := range map[string]string{"TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost"} {
			if getenv(name) == "" {
				set[name] = value
			}
		}
	}
	const level = "TF_CPP_MIN_LOG_LEVEL"
	if getenv(level) == "" {
		set[level] = "2"
		if strings.Contains(strings.ToLower(filepath.Base(path)), "cpu") {
			set[level] = "3"
		}
	}
	const flag = "--xla_gpu_cuda_data_dir"
	if flags := getenv("XLA_FLAGS"); !strings.Contains(flags, flag) {
		if dir := cudaDataDir(path); dir != "" {
			set["XLA_FLAGS"] = strings.TrimSpace(flags + " " + flag + "=" + dir)
		}
	}
	return set
}

// A TPU's device node, or a Google PCI device that is neither disk nor network card; true without a visible PCI bus.
func mayHaveTPU(root string) bool {
	for _, nodes := range []string{"dev/accel*", "dev/vfio/[0-9]*"} {
		if found, err := filepath.Glob(filepath.Join(root, nodes)); err != nil || len(found) > 0 {
			return true
		}
	}
	const google, storage, network = "0x1ae0", "0x01", "0x02"
	vendors, err := filepath.Glob(filepath.Join(root, "sys/bus/pci/devices/*/vendor"))
	if err != nil || len(vendors) == 0 {
		return true
	}
	for _, file := range vendors {
		vendor, err := os.ReadFile(file)
		if err != nil {
			return true
		}
		if strings.TrimSpace(string(vendor)) != google {
			continue
		}
		class, err := os.ReadFile(filepath.Join(filepath.Dir(file), "class"))
		if err != nil || !strings.HasPrefix(string(class), storage) && !strings.HasPrefix(string(class), network) {
			return true
		}
	}
	return false
}

// cudaDataDir returns the folder with nvvm/libdevice, or "": nvidia/cu13 or nvidia/cuda_nvcc, next to the plugin or
// up to two levels above. XLA runs its programs: other users must not own them.
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
