package pjrt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lazo-ml/lazo/internal/owners"
)

// Environment gives the variables to set before the plugin at path is loaded.
// A value that the user has set, as seen through getenv, is kept.
//
//   - TF_CPP_MIN_LOG_LEVEL=2: errors only; XLA's start-up chatter goes to stderr. For a CPU plugin 3, what ends the
//     process: PJRT API 0.106 logs an error for each program that it loads from a cache, of features of the processor
//     that are hints to its compiler. Errors of calls are not logged but returned.
//   - XLA_FLAGS: for a CUDA plugin, where ptxas and libdevice lie beside it.
//   - TPU_SKIP_MDS_QUERY=1 and TPU_WORKER_HOSTNAMES=localhost: for libtpu on a machine that has no TPU. It would ask the
//     cloud's metadata server for minutes, over the network, before it says that there is none.
func Environment(path string, getenv func(string) string) map[string]string {
	return environment("/", path, getenv)
}

// environment is that of the machine whose files lie below root.
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

// mayHaveTPU tells whether the machine whose files lie below root may have a TPU: a device node of one, or a device of
// Google's on the PCI bus that is no disk or network card of its virtual machines. Where there is no PCI bus to be
// seen, as in some containers, it may have one.
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
