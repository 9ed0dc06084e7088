package xla

// CacheHits counts the programs that a runtime loaded from its cache.
func CacheHits(r *Runtime) int { return int(r.Backend.(*pjrtClient).cache.hits.Load()) }
