package selection

import (
	"context"
	"math"

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

// Minimum is the lowest value of a function that a search's trials find, without models.
func Minimum(s Search, of func(map[string]any) float64) (float64, error) {
	trials, err := s.method().valuesOf(s.Space, s.Seed)
	r := searching{Search: s, direction: loop.Lowest, trials: trials, records: []map[int]*trialRecord{{}}, newest: map[int]*trialRecord{}, folder: &folder{new(vfs.Mem)}, found: &Result{}}
	lowest := math.Inf(1)
	for i := range trials {
		if err == nil {
			err = r.drawn(i)
		}
		if err != nil {
			return 0, err
		}
		v := of(r.parametersOf(i))
		lowest = min(lowest, v)
		r.take(&trialRecord{Number: i, Value: v}, 0)
	}
	return lowest, nil
}
