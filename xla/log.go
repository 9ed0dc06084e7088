package xla

import (
	"log/slog"
	"time"
)

// Log sets the logger. Info has plugins installed or opened and programs compiled or loaded, Warn refused cache
// entries. nil, the default, discards all. lazo writes nothing to the standard streams, except a line if a process of a
// job opens a runtime without [Across].
//
// XLA's C++ log goes to stderr, by default with errors only (fatal ones on the CPU). TF_CPP_MIN_LOG_LEVEL, set before
// the first Open, is 2 for errors, 1 for warnings, 0 for all; TF_CPP_MAX_VLOG_LEVEL above 0 adds detail.
func Log(logger *slog.Logger) Option {
	return func(o *options) {
		if logger != nil {
			o.log = logger
		}
	}
}

func logOpened(log *slog.Logger, p Plugin, devices int, start time.Time) {
	log.Info("xla: plugin opened", "plugin", p.Name, "kind", p.Kind, "path", p.Path, "version", p.Version, "api", p.API,
		"source", string(p.Source), "devices", devices, "took", time.Since(start))
}

type fromCache string

const (
	cacheOff    fromCache = "off"
	cacheMiss   fromCache = "miss"
	cacheHit    fromCache = "hit"
	cacheShared fromCache = "shared"
)

func logCompiled(log *slog.Logger, name string, from fromCache, took time.Duration, bytes int64) {
	log.Info("xla: program compiled", "program", name, "cache", string(from), "took", took, "bytes", bytes)
}
