package xla

// CacheHits counts the programs that a runtime loaded from its cache.
func CacheHits(r *Runtime) int { return int(r.Backend.(*pjrtClient).cache.hits.Load()) }

// CacheRoom is the number of bytes until the folder of a runtime's cache is counted again.
func CacheRoom(r *Runtime) int64 { return r.Backend.(*pjrtClient).cache.room.bytes }
