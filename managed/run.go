package managed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/blocks"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/xla"
)

type hold int

const (
	shareValues hold = iota
	holdValues
	holdAll
	compiledFirst
)

var errTrained = fmt.Errorf("the state is %w: another training step on it is running, and only one may train a state at a time: "+
	"wait for the other step to end, or train a Clone", xla.ErrBusy)

// view may be nil.
func (s *Stepper) run(ctx context.Context, state *State, view *View, batches []data.Batch, most int) ([]loop.Logs, error) {
	if err := s.takes(state); err != nil {
		return nil, err
	}
	if s.train && state.training.Load() {
		return nil, errTrained
	}
	if view == nil { // View.begin did, before locking
		if err := state.values.BeforeRead(); err != nil {
			return nil, err
		}
	}
	if s.train {
		if !state.training.CompareAndSwap(false, true) {
			return nil, errTrained
		}
		defer state.training.Store(false)
	}
	has := shareValues
	if s.train || view == nil && s.changing.Load() {
		has = holdValues
	}
	for {
		logs, needs, err := s.attempt(ctx, state, view, batches, most, has)
		switch {
		case err != nil || needs == has:
			return logs, err
		case needs == compiledFirst:
			if err := s.prepareFor(ctx, state, batches[0], most); err != nil {
				return nil, err
			}
		default:
			has = needs
			if view == nil {
				s.changing.Store(true) // avoids a second attempt next time
			}
		}
	}
}

func (s *Stepper) attempt(ctx context.Context, state *State, view *View, batches []data.Batch, most int, has hold) (
	logs []loop.Logs, needs hold, err error,
) {
	values := &state.values
	if has == holdAll {
		done, err := values.HoldStructure(ctx)
		if err != nil {
			return nil, has, err
		}
		defer done()
		doneValues, err := values.AddValues(ctx, true)
		if err != nil {
			return nil, has, err
		}
		defer doneValues()
	} else {
		if err := values.EnterValues(ctx, has != shareValues); err != nil {
			return nil, has, err
		}
		defer values.LeaveValues(has != shareValues)
	}
	if view == nil {
		view = state.viewOf(s)
	}
	if err := values.Last.Usable(); err != nil {
		return nil, has, err
	}
	if err := view.usable(); err != nil {
		return nil, has, err
	}
	if s.train {
		state.settings.noteBatch(batches[0], state.saved.restored != nil && state.saved.restored.from == nil)
	}
	first, err := values.Strategy().Batch(batches[0])
	if err != nil {
		return nil, has, err
	}
	mask := -1
	if s.train {
		mask = slices.IndexFunc(first.Fields, func(f data.Field) bool { return f.Name == data.Mask })
	}
	if err := trainable(&first, mask); err != nil {
		return nil, has, err
	}
	c := s.cache.lookup(state, first, most)
	if c == nil {
		return nil, compiledFirst, nil
	}
	if err := c.counts(&first); err != nil {
		return nil, has, err
	}
	if needs := c.needs(view); needs > has {
		return nil, needs, nil
	}
	if view == nil {
		if err := state.gathering.continues(c); err != nil {
			return nil, has, err
		}
	}
	a, _ := c.spare.Get().(*arguments)
	if a == nil {
		a = &arguments{buffers: append(make([]compute.Buffer, len(c.values)), c.sets...)}
	}
	defer c.spare.Put(a)
	a.batches = append(a.batches[:0], first)
	for n := 1; n < min(len(batches), c.program.Block()); n++ {
		next, err := values.Strategy().Batch(batches[n])
		if err != nil || !c.fits(next) || trainable(&next, mask) != nil || c.counts(&next) != nil {
			break // run the previous steps first
		}
		a.batches = append(a.batches, next)
	}
	logs, err = c.start(a, view)
	return logs, has, err
}

func (s *Stepper) inBlocks(ctx context.Context, state *State, view *View, batches []data.Batch) ([]loop.Logs, error) {
	ctx = context.WithoutCancel(ctx)
	all := make([]loop.Logs, 0, len(batches))
	for len(batches) > 0 {
		logs, err := s.run(ctx, state, view, batches, blocks.Steps)
		if err != nil {
			return all, s.failed(err)
		}
		all, batches = append(all, logs...), batches[len(logs):]
	}
	return all, nil
}

type arguments struct {
	buffers []compute.Buffer
	batches []data.Batch
}

// trainable refuses a batch of padding: momentum and decay would move the parameters.
func trainable(b *data.Batch, mask int) error {
	if mask < 0 {
		return nil
	}
	of := b.Fields[mask].Array
	if counts, ok := of.Flat.([]bool); ok && len(of.Dims) == 1 && !slices.Contains(counts, true) {
		return fmt.Errorf("field %q of the batch has true for none of %d rows, so no example counts: expected true for each example that counts; leave out a batch without examples", data.Mask, len(counts))
	}
	return nil
}

// start waits for the previous run.
func (c *compiled) start(a *arguments, view *View) ([]loop.Logs, error) {
	state, on := c.state, &c.state.values.Last
	if view != nil && !view.live && !c.changesState(view) {
		on = &view.last
	}
	for i, v := range c.values {
		b, err := view.value(c, i)
		if err != nil {
			return nil, err
		}
		if b == nil {
			b = state.values.Buffer(v)
			if c.changed[i] {
				if b, err = state.values.Overwritten(v); err != nil {
					return nil, err
				}
			}
		}
		a.buffers[i] = b
	}
	changed, outputs, running, err := c.program.Start(a.buffers, a.batches)
	if err != nil {
		on.Fails(err)
		return nil, err
	}
	for i, v := range c.values {
		if changed[i] != nil && !view.set(c, i, changed[i]) {
			state.values.Changed(v, changed[i])
		}
	}
	logs, err := c.logs(outputs, len(a.batches))
	if err = errors.Join(err, on.Follow(running)); err != nil {
		return nil, err
	}
	return logs, nil
}

func (c *compiled) logs(outputs []compute.Buffer, n int) (logs []loop.Logs, err error) {
	state := c.state
	logs = make([]loop.Logs, n)
	if len(c.layout) > 0 {
		var p *scalars
		p, logs = newLogs(c.layout, n)
		err = state.values.Hold(&p.Remote, outputs[0])
		outputs = outputs[1:]
	}
	for i, w := range c.wholes {
		o := new(output)
		logs[0].Set(w.collection, w.name, o)
		err = errors.Join(err, state.values.Hold(&o.Remote, outputs[i]))
	}
	return logs, err
}
