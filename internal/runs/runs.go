// Package runs finds the runs that lazo recorded in a folder, and reads them from checkpoints, files of
// callbacks.JSONL and CSV, and TensorBoard's event files.
package runs

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/better"
	"github.com/lazo-ml/lazo/loop"
)

type Run struct {
	Name string
	// Status is "" if no record has it. Why is the reason of the end.
	Status        checkpoint.RunStatus
	Why           string
	Steps, Epochs int64
	Duration      time.Duration
	Settings      map[string]string
	Values        map[string]Value
	// Err has the records' errors, whose values are left out.
	Err error
}

type Value struct {
	Last float64
	// Best is NaN without a finite value, or if Mode is 0.
	Best float64
	Mode loop.Mode

	at int64 // step of Last
}

type values map[string]Value

const progress = "progress"

func (v values) add(path string, step int64, x float64) {
	of, known := v[path]
	if !known {
		collection, name, _ := strings.Cut(path, ".")
		if collection == progress {
			return
		}
		mode, err := better.Of(loop.Mode(0), name)
		if err != nil && loop.Collection(collection) == loop.Losses {
			mode = loop.Lowest
		}
		of = Value{Best: math.NaN(), Mode: mode, at: -1}
	}
	if step >= of.at {
		of.Last, of.at = x, step
	}
	of.improve(x)
	v[path] = of
}

func (v *Value) improve(x float64) {
	if v.Mode == 0 {
		return
	}
	best := v.Best
	if math.IsNaN(best) {
		best = better.Worst(v.Mode)
	}
	if better.Than(v.Mode, x, best, 0) {
		v.Best = x
	}
}

func (v values) merge(from values) {
	for path, o := range from {
		of, known := v[path]
		if !known {
			of = o
		}
		if o.at >= of.at {
			of.Last, of.at = o.Last, o.at
		}
		of.improve(o.Best)
		v[path] = of
	}
}

type part struct {
	at     loop.Elapsed
	values values
}

func ReadAll(ctx context.Context, places []Place, log *slog.Logger) ([]Run, error) {
	all := make([]Run, len(places))
	var group sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := range next {
				all[i] = places[i].read(ctx, log)
			}
		})
	}
	for i := range places {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	group.Wait()
	return all, context.Cause(ctx)
}

func (p Place) read(ctx context.Context, log *slog.Logger) Run {
	r, found := Run{Name: p.Name}, values{}
	take := func(got part, err error) {
		if err != nil {
			r.Err = errors.Join(r.Err, err)
			return
		}
		r.Steps, r.Epochs, r.Duration = max(r.Steps, got.at.Steps), max(r.Epochs, got.at.Epochs), max(r.Duration, got.at.Time)
		found.merge(got.values)
	}
	for _, dir := range p.saves {
		take(r.saved(ctx, dir, log))
	}
	for _, path := range p.rows {
		take(steady(path, rowsOf))
	}
	for _, dir := range p.events {
		got, err := r.logged(dir, len(found) == 0) // else the same values with fewer digits
		take(got, err)
	}
	for name, text := range r.Settings {
		r.Settings[name] = unique.Make(text).Value() // most are those of other runs too
	}
	r.Values = found
	return r
}

func (r *Run) saved(ctx context.Context, dir string, log *slog.Logger) (p part, err error) {
	f, err := checkpoint.Open(dir, checkpoint.Options{ReadOnly: true, Log: log})
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	saved, err := f.Run(ctx)
	if err != nil {
		return p, err
	}
	r.Status, r.Why, r.Settings = saved.Status, saved.Why, saved.Settings
	p = part{saved.Elapsed, values{}}
	for at, logs := range saved.History.Rows() {
		for e := range logs.All() {
			x, err := e.Value.Float()
			if err != nil {
				return p, err
			}
			p.values.add(e.Path(), at.Steps, x)
		}
	}
	return p, nil
}
