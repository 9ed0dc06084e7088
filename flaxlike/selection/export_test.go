package selection

import (
	"context"

	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// DirectionOf is that of an entry of a search.
func DirectionOf(entry string, given loop.Mode) (loop.Mode, error) { return directionOf(entry, given) }

// ValuesOf are the values of a search's trials.
func ValuesOf(s Search) ([][]any, error) { return s.method().valuesOf(s.Space, s.Seed) }

// Rungs are the trials and the epochs of a search's rungs.
func Rungs(s Search) (all [][2]int) {
	m := s.method()
	for _, r := range m.rungs(m.trials) {
		all = append(all, [2]int{r.trials, r.epochs})
	}
	return all
}

// RunOn is Run with the records in another file system.
func (s Search) RunOn(ctx context.Context, files vfs.FS) (*Result, error) {
	found := &Result{Entry: s.Entry, dir: s.Dir}
	return found, s.run(ctx, files, found)
}
