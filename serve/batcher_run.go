package serve

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/shield"
)

func (b *Batcher) enqueue(ctx context.Context, r *request) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return fmt.Errorf("the batcher: %w", ErrClosed)
	case b.rows+r.rows > b.set.Queue:
		return fmt.Errorf("%w: %d of at most %d examples wait: ask again later", ErrFull, b.rows, b.set.Queue)
	}
	r.came = time.Now()
	b.waiting, b.rows = append(b.waiting, r), b.rows+r.rows
	b.rouse()
	return nil
}

// One pending wake is enough.
func (b *Batcher) rouse() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *Batcher) leave(r *request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := slices.Index(b.waiting, r); at >= 0 {
		b.waiting, b.rows = slices.Delete(b.waiting, at, at+1), b.rows-r.rows
	}
}

func (b *Batcher) run() {
	ended := false
	defer func() {
		if ended {
			close(b.done)
		} else { // a predictor's runtime.Goexit fails its batch only
			go b.run()
		}
	}()
	for {
		together, batch, wait, end := b.next(time.Now())
		switch {
		case end:
			ended = true
			return
		case len(together) > 0:
			b.answer(together, batch)
		case wait > 0:
			timer := time.NewTimer(wait)
			select {
			case <-b.wake:
			case <-timer.C:
			}
			timer.Stop()
		default:
			<-b.wake
		}
	}
}

// Without a batch next returns how long to wait, 0 until the next wake.
func (b *Batcher) next(now time.Time) (together []*request, batch data.Batch, wait time.Duration, end bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		return nil, batch, 0, b.closed
	}
	wait = b.waiting[0].came.Add(b.set.Delay).Sub(now)
	if wait > 0 && b.rows < b.set.MaxBatch && !b.closed {
		return nil, batch, wait, false
	}
	n, rows := 0, 0
	for n < len(b.waiting) && rows+b.waiting[n].rows <= b.set.MaxBatch {
		rows += b.waiting[n].rows
		n++
	}
	together = slices.Clone(b.waiting[:n])
	for _, r := range together {
		r.queued = now.Sub(r.came)
	}
	b.waiting, b.rows = slices.Delete(b.waiting, 0, n), b.rows-rows
	return together, b.stack(together, b.sizeFor(rows)), 0, false
}

func (b *Batcher) stack(together []*request, size int) data.Batch {
	batch := data.Batch{Fields: make([]data.Field, len(b.inputs))}
	for i, in := range b.inputs {
		width := 1
		for _, d := range in.Dims {
			width *= d
		}
		flat := reflect.MakeSlice(reflect.TypeOf(b.example[i].Array.Flat), size*width, size*width)
		at := 0
		for _, r := range together {
			at += reflect.Copy(flat.Slice(at, flat.Len()), reflect.ValueOf(r.fields[i].Flat))
		}
		for at < flat.Len() {
			at += reflect.Copy(flat.Slice(at, flat.Len()), flat.Slice(at-width, at))
		}
		batch.Fields[i] = data.Named(in.Name, flat.Interface(), append([]int{size}, in.Dims...)...)
	}
	return batch
}

// After an error that one request may cause, answer predicts each alone.
func (b *Batcher) answer(together []*request, batch data.Batch) {
	var outputs map[string]data.Array
	shield.Call(func() (err error) {
		outputs, err = b.predict(context.Background(), batch)
		return err
	}, func(err error) {
		at := 0
		var some graphs.OutputErrors
		partly := errors.As(err, &some) && (len(together) == 1 || some.OfAnyInput())
		for _, r := range together {
			switch {
			case err == nil || partly:
				r.answer <- answer{rowsOf(outputs, at, at+r.rows), r.queued, err}
			case len(together) == 1 || errors.Is(err, shield.ErrGoexit):
				r.answer <- answer{queued: r.queued, err: err}
			default:
				for i, f := range batch.Fields {
					r.fields[i] = f.Array.Slice(at, at+r.rows)
				}
				alone := []*request{r}
				b.answer(alone, b.stack(alone, b.sizeFor(r.rows)))
			}
			at += r.rows
		}
	})
}

// A graphs.OutputErrors comes with the other outputs.
func (b *Batcher) predict(ctx context.Context, batch data.Batch) (map[string]data.Array, error) {
	outputs, err := b.of.Answer(ctx, batch)
	if some := (graphs.OutputErrors)(nil); err != nil && !errors.As(err, &some) {
		if errors.Is(err, ErrInput) && !strings.HasPrefix(err.Error(), ErrInput.Error()) {
			return nil, fmt.Errorf("%w: %w", ErrInput, graphs.Inner(err))
		}
		if errors.Is(err, ErrClosed) {
			b.mu.Lock()
			b.gone = true
			b.mu.Unlock()
		}
		return nil, err
	}
	rows := batch.Fields[0].Array.Len()
	for name, a := range outputs {
		if a.Slice(0, rows).Flat == nil || a.Len() != rows { // an invalid array has an empty slice
			return nil, fmt.Errorf("output %q has dims %v for %d examples: expected one row for each, so that each request gets its own", name, a.Dims, rows)
		}
	}
	return outputs, err
}

func rowsOf(outputs map[string]data.Array, from, to int) map[string]data.Array {
	own := make(map[string]data.Array, len(outputs))
	for name, a := range outputs {
		own[name] = a.Slice(from, to)
	}
	return own
}

// Close refuses new requests and waits for the accepted ones, without end if the predictor does not return. It does
// not close the predictor. It may be repeated.
func (b *Batcher) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.rouse()
	<-b.done
	return nil
}
