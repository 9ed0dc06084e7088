package xla

import (
	"log/slog"
	"time"
)

// Log sets where Open and what it opens say what they do: a plugin was installed or opened, a program compiled or
// loaded from the cache (level Info), a cached program passed over (Warn). nil, the default, is nowhere: lazo itself
// writes nothing to the standard streams, but for one line where a process of a job opens a runtime without [Across].
//
// XLA's own log, in C++, goes to stderr, and has errors only (of a plugin for the CPU: what ends the process) unless
// the environment variable TF_CPP_MIN_LOG_LEVEL says 2 (errors too), 1 (warnings too) or 0 (all) before the first
// plugin is opened; TF_CPP_MAX_VLOG_LEVEL above 0 makes it speak at length.
func Log(logger *slog.Logger) Option {
	return func(o *options) {
		if logger != nil {
			o.log = logger
		}
	}
}

// logOpened says which plugin was opened.
func logOpened(log *slog.Logger, p Plugin, devices int, start time.Time) {
	log.Info("xla: plugin opened", "plugin", p.Name, "kind", p.Kind, "path", p.Path, "version", p.Version, "api", p.API,
		"source", string(p.Source), "devices", devices, "took", time.Since(start))
}

// fromCache says whether a program came from the compile cache; a shared one is not looked for there.
type fromCache string

const (
	cacheOff    fromCache = "off"
	cacheMiss   fromCache = "miss"
	cacheHit    fromCache = "hit"
	cacheShared fromCache = "shared"
)

// logCompiled says that a program is ready, what it took and how much memory a run needs.
func logCompiled(log *slog.Logger, name string, from fromCache, took time.Duration, bytes int64) {
	log.Info("xla: program compiled", "program", name, "cache", string(from), "took", took, "bytes", bytes)
}
