package images

import (
	"slices"
	"sync"
)

// keptImages evicts none: each epoch needs every image once.
type keptImages struct {
	mu    sync.RWMutex
	bytes int64
	by    map[int32][]float32
}

func (k *keptImages) get(n int32, to []float32) bool {
	k.mu.RLock()
	pixels := k.by[n]
	k.mu.RUnlock()
	return pixels != nil && copy(to, pixels) == len(to)
}

func (k *keptImages) put(n int32, pixels []float32, limit int64) {
	bytes := 4 * int64(len(pixels))
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by[n] != nil || bytes > limit-k.bytes {
		return
	}
	if k.by == nil {
		k.by = map[int32][]float32{}
	}
	k.by[n] = slices.Clone(pixels)
	k.bytes += bytes
}
