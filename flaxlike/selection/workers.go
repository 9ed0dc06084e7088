package selection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/internal/better"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// claimed is a trial that this process trains, with a lock that ends with the process.
type claimed struct {
	number, level int
	lock          io.Closer
}

func (r *searching) alone(ctx context.Context, f func() error) error {
	lock, err := r.folder.lock(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(), lock.Close())
}

func (r *searching) work(ctx context.Context) error {
	for {
		var next *claimed
		ended := false
		err := r.alone(ctx, func() (err error) {
			next, ended, err = r.next()
			if r.tabulate(); err == nil && ended {
				err = r.sweep(true)
			}
			return err
		})
		switch {
		case err != nil:
			return err
		case ended:
			return r.end()
		case next == nil:
			err = pause(ctx, 200*time.Millisecond)
		default:
			err = r.train(ctx, next)
		}
		if err != nil {
			return err
		}
	}
}

func (r *searching) train(ctx context.Context, c *claimed) (err error) {
	defer func() {
		if c.lock != nil {
			err = errors.Join(err, c.lock.Close())
		}
	}()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := r.compare(ctx); err != nil {
		return err
	}
	record, err := r.trial(ctx, c.number, r.rungs[c.level].epochs)
	if err == nil && (record.Failed == "" || record.began) { // else another Run repeats it: Make may be fixed by then
		err = r.folder.write(recordOf(c.number, c.level), record)
	}
	if err != nil {
		return err
	}
	r.take(record, c.level)
	r.tabulate()
	if err := r.sweep(false); err != nil {
		return err
	}
	return r.alone(context.WithoutCancel(ctx), func() error {
		lock := c.lock
		c.lock = nil
		return errors.Join(lock.Close(), r.folder.files.Remove(lockOf(c.number)))
	})
}

// next returns nil, without an end, while other processes train the rest.
func (r *searching) next() (c *claimed, ended bool, err error) {
	names, err := r.folder.files.ReadDir(".")
	if err != nil {
		return nil, false, err
	}
	r.files = map[string]bool{}
	for _, name := range names {
		r.files[name] = true
	}
	choose := r.halve
	if r.Asynchronous {
		choose = r.promote
	}
	c, waits, err := choose()
	if c != nil || waits || err != nil {
		return c, false, err
	}
	running, err := r.running()
	return nil, !running, err
}

func (r *searching) halve() (c *claimed, waits bool, err error) {
	alive := r.numbers()
	for level, of := range r.rungs {
		alive = alive[:min(len(alive), of.trials)]
		missing, err := r.missing(alive, level)
		if err != nil {
			return nil, false, err
		}
		if len(missing) > 0 {
			c, err := r.claim(missing, level)
			return c, true, err
		}
		slices.SortFunc(alive, func(a, b int) int { return r.order(r.records[level], a, b) })
		alive = slices.DeleteFunc(alive, func(number int) bool { return r.records[level][number].Failed != "" })
	}
	return nil, false, nil
}

// promote prefers the highest rung that has a trial to continue to a new trial.
func (r *searching) promote() (c *claimed, waits bool, err error) {
	for level := range r.rungs {
		if _, err := r.missing(r.numbers(), level); err != nil {
			return nil, false, err
		}
	}
	for level := len(r.rungs) - 2; level >= 0; level-- {
		of := r.records[level]
		best := slices.SortedFunc(maps.Keys(of), func(a, b int) int { return r.order(of, a, b) })
		best = slices.DeleteFunc(best[:len(best)/r.Factor], func(number int) bool { return of[number].Failed != "" || r.records[level+1][number] != nil })
		if c, err := r.claim(best, level+1); c != nil || err != nil {
			return c, false, err
		}
		waits = waits || len(best) > 0
	}
	missing, err := r.missing(r.numbers(), 0)
	if err != nil {
		return nil, false, err
	}
	c, err = r.claim(missing, 0)
	return c, waits || len(missing) > 0, err
}

func (r *searching) numbers() (all []int) {
	for i := range r.trials {
		all = append(all, i)
	}
	return all
}

func (r *searching) missing(of []int, level int) (missing []int, err error) {
	for _, number := range of {
		there, err := r.recorded(number, level)
		if err != nil {
			return nil, err
		}
		if !there {
			missing = append(missing, number)
		}
	}
	return missing, nil
}

func (r *searching) claim(of []int, level int) (*claimed, error) {
	for _, number := range of {
		lock, err := r.folder.files.Lock(lockOf(number), "a trial")
		if locked := (*vfs.LockedError)(nil); errors.As(err, &locked) {
			continue
		}
		if err == nil {
			err = r.drawn(number)
		}
		if err != nil {
			if lock != nil {
				err = errors.Join(err, lock.Close())
			}
			return nil, err
		}
		return &claimed{number, level, lock}, nil
	}
	return nil, nil
}

func (r *searching) running() (bool, error) {
	for name := range r.files {
		if !strings.HasPrefix(name, "trial-") || !strings.HasSuffix(name, lockSuffix) {
			continue
		}
		lock, err := r.folder.files.Lock(name, "a trial")
		if locked := (*vfs.LockedError)(nil); errors.As(err, &locked) {
			return true, nil
		}
		if err == nil { // its process was killed, or it failed before an epoch
			err = errors.Join(lock.Close(), r.folder.files.Remove(name))
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

type drawnRecord struct {
	Number     int               `json:"trial"`
	Parameters map[string]string `json:"parameters"`
}

func (r *searching) drawn(number int) error {
	if r.trials[number] != nil {
		return nil
	}
	for other := range r.trials[:number+1] {
		if there, err := r.readDrawn(other); err != nil || there && other == number {
			return err
		}
	}
	keys := map[string]bool{}
	for _, values := range r.trials {
		if values != nil {
			keys[keyOf(values)] = true
		}
	}
	taken := func(values []any) bool { return keys[keyOf(values)] }
	of, ended := r.records[0], 0
	var results [][]any
	for _, n := range slices.SortedFunc(maps.Keys(of), func(a, b int) int { return r.order(of, a, b) }) {
		if results = append(results, r.trials[n]); of[n].Failed == "" {
			ended++
		}
	}
	random := generator(r.Seed, number)
	if ended > 0 {
		r.trials[number] = propose(r.Space, results, ended, random, taken)
	}
	if r.trials[number] == nil {
		if r.trials[number] = drawDistinct(r.Space, random, taken); r.trials[number] == nil {
			return fmt.Errorf("got Trials %d: found no trial that differs from the first %d: draw fewer", r.Trials, number)
		}
	}
	return r.folder.write(drawnOf(number), drawnRecord{number, r.textsOf(number)})
}

func (r *searching) readDrawn(number int) (bool, error) {
	if r.trials[number] != nil {
		return true, nil
	}
	var of drawnRecord
	if !r.files[drawnOf(number)] {
		return false, nil
	}
	there, err := r.folder.read(drawnOf(number), &of)
	if err != nil || !there {
		return false, err
	}
	var values []any
	for _, p := range r.Space {
		v, err := p.parse(of.Parameters[p.Name])
		if err != nil {
			return false, fmt.Errorf("the record %s: the parameter %q: %w", drawnOf(number), p.Name, err)
		}
		values = append(values, v)
	}
	r.trials[number] = values
	return true, nil
}

func (p Parameter) parse(text string) (any, error) {
	for _, v := range p.Values {
		if inGo(v) == text {
			return v, nil
		}
	}
	switch {
	case p.Values != nil:
		return nil, fmt.Errorf("%q is not one of its Values", text)
	case p.Integer:
		return strconv.Atoi(text)
	}
	return strconv.ParseFloat(text, 64)
}

const fewestToPrune = 5

func (r *searching) limits() map[int]float64 {
	if r.PruneAfter == 0 {
		return nil
	}
	values := map[int][]float64{}
	for _, record := range r.newest {
		if record.Failed != "" {
			continue
		}
		for epoch, v := range record.Values {
			values[epoch] = append(values[epoch], v)
		}
	}
	limits := map[int]float64{}
	for epoch, of := range values {
		if n := len(of); n >= fewestToPrune {
			slices.Sort(of)
			limits[epoch] = (of[(n-1)/2] + of[n/2]) / 2
		}
	}
	return limits
}

func (r *searching) prune(report loop.Report, limits map[int]float64, record *trialRecord) error {
	epoch := int(report.Elapsed.Epochs)
	limit, there := limits[epoch]
	if !there || epoch < r.PruneAfter {
		return nil
	}
	best := better.Worst(r.direction)
	for _, logs := range report.History.Rows() {
		if v, err := logs.Float(r.Entry); err == nil && !math.IsNaN(v) && better.Than(r.direction, v, best, 0) {
			best = v
		}
	}
	if !better.Than(r.direction, limit, best, 0) {
		return nil
	}
	record.Pruned = true
	return fmt.Errorf("%s is %v at best after %d epochs, worse than the median %v of other trials: %w", r.Entry, best, epoch, limit, loop.ErrStop)
}
