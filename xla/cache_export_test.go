package xla

// CacheHits is how many programs a runtime loaded from its cache.
func CacheHits(r *Runtime) int { return int(r.Backend.(*client).cache.hits.Load()) }
