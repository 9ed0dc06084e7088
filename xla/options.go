package xla

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"time"
)

// Option is an option of [Open] and [Find].
type Option func(*openOptions)

type openOptions struct {
	root     string
	install  bool
	progress func(string)
	client   map[string]any
	cache    *cache
	programs int
	limit    time.Duration
	log      *slog.Logger
	job      Job
	store    Store
	err      error
}

// internal/plugintest.Program sets this default folder by the linker (-X).
var linkedCache string

func newOptions(opts []Option) (*openOptions, error) {
	o := &openOptions{client: map[string]any{}, progress: func(string) {}, programs: idlePrograms, log: slog.New(slog.DiscardHandler)}
	if linkedCache != "" {
		CompileCache(linkedCache, 0)(o)
	}
	for _, apply := range opts {
		if apply != nil {
			apply(o)
		}
	}
	if o.progress == nil {
		o.progress = func(string) {}
	}
	if o.store != nil && o.job == nil && o.err == nil {
		o.err = errors.New("xla: WithStore is for the processes of a job: give Across too")
	}
	return o, o.err
}

// Root sets the folder of installed plugins, by default $LAZO_HOME, or lazo's in the home folder.
func Root(dir string) Option {
	return func(o *openOptions) { o.root = dir }
}

// InstallIfMissing lets Open install a missing plugin. progress, which may be nil, receives lines for the user.
func InstallIfMissing(progress func(line string)) Option {
	return func(o *openOptions) { o.install, o.progress = true, progress }
}

// CompileCache keeps compiled programs in dir, which it creates; "" is in the user's cache. The key is the program,
// compile and client options, the plugin's file, its environment (like XLA_FLAGS, or the file that it names), the
// devices and the processor. limit is in bytes, 0 means 1 GiB; the least recently used entries are removed. Damaged or
// refused ones are replaced with a warning (see [Log]).
//
// If others may write to dir, Open fails; entries of others count as damaged (docs/security.md).
func CompileCache(dir string, limit int64) Option {
	return func(o *openOptions) {
		if limit < 0 {
			o.err = fmt.Errorf("xla: compile cache: the limit must not be negative, got %d", limit)
		}
		o.cache = &cache{dir: dir, limit: cmp.Or(limit, 1<<30)}
	}
}

// KeepPrograms sets how many closed programs a runtime keeps for models of the same structure, by default 12. Texts
// over 1 MiB are not kept. For later processes see [CompileCache].
func KeepPrograms(n int) Option {
	return func(o *openOptions) {
		if n < 0 {
			o.err = fmt.Errorf("xla: keep programs: the number must not be negative, got %d", n)
		}
		o.programs = n
	}
}

// CompileTimeout limits each compilation of [OpenTopology], by default to 10 minutes: longer is [ErrDeadline].
func CompileTimeout(limit time.Duration) Option {
	return func(o *openOptions) {
		if limit <= 0 {
			o.err = fmt.Errorf("xla: compile timeout: expected more than 0, got %v", limit)
		}
		o.limit = limit
	}
}

// ClientOption sets an option of the plugin's client to a string, bool, int, int64, []int64, float32 or float64.
// "cpu_device_count" (1 to 2048) is by default --xla_force_host_platform_device_count of XLA_FLAGS, or 1. An unknown
// name is an [ErrInvalidArgument] of [Open].
func ClientOption(name string, value any) Option {
	if list, ok := value.([]int64); ok {
		value = slices.Clone(list)
	}
	return func(o *openOptions) {
		switch v := value.(type) {
		case string, bool, int64, []int64, float32:
		case int:
			value = int64(v)
		case float64:
			if math.Abs(v) > math.MaxFloat32 {
				o.err = fmt.Errorf("xla: client option %q: %g does not fit a float32", name, v)
			}
			value = float32(v)
		default:
			o.err = fmt.Errorf("xla: client option %q has a value of type %T, expected string, bool, int64, []int64 or float32", name, value)
		}
		if n, whole := value.(int64); name == cpuDevices && o.err == nil && (!whole || n < 1 || n > maxCPUDevices) {
			// The plugin crashes on a string, hides its reason on -1, and takes minutes for 1e5.
			o.err = fmt.Errorf("xla: client option %q is %v, expected a whole number from 1 to %d", name, value, maxCPUDevices)
		}
		o.client[name] = value
	}
}

// Across opens the runtime for all processes of a job. A mesh of [Runtime.NumDevices] devices has all processes'
// ones, rank 0's first. One process changes nothing; a nil job is an error.
//
// A CPU process is one device and exchanges values by MPI. Accelerator processes have equally many devices and
// exchange values by XLA's collectives. Open waits for all, and fails in all if it fails in one.
//
// All must make and run the same programs in the same order: differences are dist.ErrDisagree.
func Across(job Job) Option {
	return func(o *openOptions) {
		if of := reflect.ValueOf(job); !of.IsValid() || of.Kind() == reflect.Pointer && of.IsNil() {
			o.err = errors.New("xla: Across is given no job: see dist.Join")
			return
		}
		o.job = job
	}
}

// WithStore replaces the job's own store for its GPU plugins ([Across]). The store must work until the runtime is
// closed. It is an error for CPUs and TPUs.
func WithStore(store Store) Option {
	return func(o *openOptions) {
		if store == nil {
			o.err = errors.New("xla: WithStore is given no store")
		}
		o.store = store
	}
}

// Log sets the logger. Info has plugins installed or opened and programs compiled or loaded, Warn refused cache
// entries. nil, the default, discards all.
//
// XLA's C++ log goes to stderr, by default errors only (fatal ones on the CPU). TF_CPP_MIN_LOG_LEVEL, set before the
// first Open, is 2 for errors, 1 for warnings, 0 for all; TF_CPP_MAX_VLOG_LEVEL above 0 adds detail.
func Log(logger *slog.Logger) Option {
	return func(o *openOptions) {
		if logger != nil {
			o.log = logger
		}
	}
}
