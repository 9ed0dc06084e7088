package xla

import (
	"log/slog"
	"time"
)

func logOpened(log *slog.Logger, p Plugin, devices int, start time.Time) {
	log.Info("xla: plugin opened", "plugin", p.Name, "kind", p.Kind, "path", p.Path, "version", p.Version, "api", p.API,
		"source", p.Source, "devices", devices, "took", time.Since(start))
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
