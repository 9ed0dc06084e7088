package managed

import (
	"errors"
	"slices"
	"sync"

	"github.com/lazo-ml/lazo/data"
)

// cache is what a step was compiled to. It has a lock of its own, since a step serves many states.
type cache struct {
	mu       sync.Mutex
	compiled []*compiled
	uses     int64
}

// lookup gives the compiled form for a state and a batch, with so many steps at once; nil if there is none. The state's
// values are shared, or its structure is held.
func (k *cache) lookup(state *State, batch data.Batch, block int) *compiled {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.compiled {
		if c.state == state && c.moves == state.storage.moves && c.block == block && c.fits(batch) {
			k.uses++
			c.used = k.uses
			return c
		}
	}
	return nil
}

// add gives for how many shapes of batches the step is compiled now.
func (k *cache) add(c *compiled) (shapes int) {
	k.mu.Lock()
	k.uses++
	c.used = k.uses
	k.compiled = append(k.compiled, c)
	k.mu.Unlock()
	shapes, _ = k.shapes(c.state, c.block)
	return shapes
}

// shapes counts the shapes of batches for which the step is compiled, and gives the form that was used longest ago.
func (k *cache) shapes(state *State, block int) (n int, oldest *compiled) {
	k.each(func(c *compiled) {
		if c.state != state || c.block != block {
			return
		}
		n++
		if oldest == nil || c.used < oldest.used {
			oldest = c
		}
	})
	return n, oldest
}

// each looks at all compiled forms, none of which is closed meanwhile.
func (k *cache) each(look func(*compiled)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.compiled {
		look(c)
	}
}

// drop takes compiled forms out of the cache, and then closes them.
func (k *cache) drop(which func(*compiled) bool, closeOne func(*compiled) error) error {
	var dropped []*compiled
	k.mu.Lock()
	k.compiled = slices.DeleteFunc(k.compiled, func(c *compiled) bool {
		if which(c) {
			dropped = append(dropped, c)
			return true
		}
		return false
	})
	k.mu.Unlock()
	var errs []error
	for _, c := range dropped {
		errs = append(errs, closeOne(c))
	}
	return errors.Join(errs...)
}
