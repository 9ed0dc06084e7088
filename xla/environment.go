package xla

import (
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/probe"
	"github.com/lazo-ml/lazo/internal/regular"
)

const xlaFlags = "XLA_FLAGS"

type environment struct {
	flags string   // XLA_FLAGS, or content of its file
	other []string // NAME=value, sorted
}

var environmentPrefixes = []string{
	"XLA_", "TF_", "TSL_", "PJRT_", "NPROC", "LIBTPU_", "TPU_", "MEGASCALE_", "CUDA_", "CUDNN_", "CUBLAS", "NVIDIA_", "NCCL_", "ROCM_", "HIP_",
	"ONEDNN_", "DNNL_", "LLVM_", "MLIR_", "EIGEN_", "OMP_", "HWLOC_",
}

func environmentOf(path string) (e environment, err error) {
	set := pjrt.Environment(path, os.Getenv)
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if _, ours := set[name]; !ours {
			set[name] = value
		}
	}
	for name, value := range set {
		// These do not affect programs.
		if name == xlaFlags || name == searchPathVariable || strings.HasPrefix(name, "TF_CPP_") {
			continue
		}
		if slices.ContainsFunc(environmentPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			e.other = append(e.other, name+"="+value)
		}
	}
	slices.Sort(e.other)
	if e.flags, err = readFlags(set[xlaFlags]); err != nil {
		return environment{}, err
	}
	if strings.Contains(e.flags, "xla_flags_reset") {
		return environment{}, fmt.Errorf("%w: xla_flags_reset is not supported: programs that are compiled once and shared must mean the same", probe.ErrFlags)
	}
	return e, nil
}

const flagsLimit = 1 << 20

func readFlags(value string) (string, error) {
	if value == "" || strings.HasPrefix(strings.TrimLeft(value, " \t\r\n"), "-") {
		return value, nil
	}
	text, err := regular.Read(value, flagsLimit)
	if err != nil {
		return "", fmt.Errorf("%w: %.200q begins with no \"-\", so it names a file: %w", probe.ErrFlags, value, err)
	}
	return string(text), nil
}

func (e environment) String() string {
	return fmt.Sprintf("%q %q", e.flags, e.other)
}

// a digest: plugins may crash on unknown options
func (e environment) options() string {
	all := []string{e.flags}
	for _, entry := range e.other {
		if strings.HasPrefix(entry, "LIBTPU_INIT_ARGS=") {
			all = append(all, entry)
		}
	}
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", all)))
}

type origin struct {
	file        identity
	environment environment
}

var started struct {
	sync.Mutex
	plugins map[string]origin
}

func originOf(path string) (origin, error) {
	now, err := environmentOf(path)
	if err != nil {
		return origin{}, err
	}
	started.Lock()
	defer started.Unlock()
	if first, ok := started.plugins[path]; ok {
		if userFlags(first.environment.flags) != userFlags(now.flags) {
			return origin{}, fmt.Errorf("%w: they are %q, and were %q when this process first opened the plugin, which reads them once: set them before that, or in another process",
				probe.ErrFlags, now.flags, first.environment.flags)
		}
		return first, nil
	}
	file, err := identityOf(path)
	if err != nil {
		return origin{}, err
	}
	if started.plugins == nil {
		started.plugins = map[string]origin{}
	}
	started.plugins[path] = origin{file, now}
	return started.plugins[path], nil
}

func userFlags(flags string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(flags), func(f string) bool { return strings.HasPrefix(f, "--xla_gpu_cuda_data_dir=") }), " ")
}
