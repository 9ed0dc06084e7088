package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/abilities"
)

// Async saves checkpoints in the background. One is being written and at most one waits; a newer one replaces it. Call
// Wait after a checkpoint that must not be replaced.
type Async struct {
	folder  *Folder
	another []Step // another run's; the first save removes them

	mu       sync.Mutex
	idle     sync.Cond
	busy     bool
	present  *draft
	waiting  *draft
	spare    map[string][]byte
	failed   []error
	failing  atomic.Bool
	replaced int64
	closed   bool
}

// Async returns a background saver. Save into the folder only through it.
func (f *Folder) Async() *Async {
	a := &Async{folder: f}
	a.idle.L = &a.mu
	return a
}

// The next save removes these steps right before it becomes visible.
func (a *Async) supersede(steps []Step) { a.another = slices.Clone(steps) }

type backgroundError struct {
	Step Step
	Dir  string
	Err  error
}

func (e *backgroundError) Error() string {
	return fmt.Sprintf("checkpoint: save step %d in %s, in the background: %v", e.Step, e.Dir, e.Err)
}

func (e *backgroundError) Unwrap() error { return e.Err }

// Save copies the content, until ctx ends, and starts writing the copy. It returns an error of the content at once,
// and errors of earlier saves, each once. After a failed Write it drops the waiting checkpoint too.
func (a *Async) Save(ctx context.Context, step Step, content Content) error {
	d, err := newDraft(step, content)
	if err == nil {
		err = a.copy(ctx, d)
	}
	if err != nil && content.Sharded() {
		err = errors.Join(err, a.folder.GiveUp(context.WithoutCancel(ctx), step, content.Share, err))
	}
	return errors.Join(a.folder.wrap(err, "save step %d", step), a.Check())
}

func (a *Async) copy(ctx context.Context, d *draft) error {
	buffers, replaced, err := a.begin()
	if err != nil {
		return err
	}
	if replaced != nil && replaced.cut() {
		if err := a.folder.GiveUp(ctx, replaced.manifest.step, replaced.share, errors.New("a newer one has replaced it")); err != nil {
			return err
		}
	}
	if err := d.copyTensors(ctx, buffers); err != nil {
		return err
	}
	a.enqueue(d)
	return nil
}

// The buffers are the waiting checkpoint's, which begin drops, or a finished one's.
func (a *Async) begin() (buffers map[string][]byte, replaced *draft, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, nil, errClosed
	}
	if d := a.waiting; d != nil {
		a.waiting = nil
		a.replaced++
		a.folder.options.Log.Debug("checkpoint: not saved, since a newer one came while an older one was being written",
			"folder", a.folder.dir, "step", int64(d.manifest.step))
		return d.buffers(), d, nil
	}
	buffers = a.spare
	a.spare = nil
	return buffers, nil, nil
}

func (a *Async) enqueue(d *draft) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = d
	if !a.busy {
		a.busy = true
		go a.work()
	}
}

func (a *Async) work() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.waiting != nil {
		d := a.waiting
		a.present, a.waiting = d, nil
		a.mu.Unlock()
		err := a.folder.save(context.Background(), d, &a.another)
		a.mu.Lock()
		if err != nil {
			a.failed = append(a.failed, &backgroundError{d.manifest.step, a.folder.dir, err})
			a.failing.Store(true)
		}
		a.spare = d.buffers()
	}
	a.present, a.busy = nil, false
	a.idle.Broadcast()
}

// Check returns errors of background saves, each once.
func (a *Async) Check() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := errors.Join(a.failed...)
	a.failed = nil
	a.failing.Store(false)
	return err
}

func (a *Async) hasFailed() bool { return a.failing.Load() }

func (a *Async) writing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting != nil || a.present != nil && !a.present.written.Load()
}

func (a *Async) writes() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.busy
}

func (a *Async) lastCall() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range []*draft{a.present, a.waiting} {
		if d != nil {
			d.overOnce.Do(func() { close(d.over) })
		}
	}
}

// Wait waits until everything is written or ctx ends, and returns errors as Check.
func (a *Async) Wait(ctx context.Context) error {
	wake := context.AfterFunc(ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.idle.Broadcast()
	})
	defer wake()
	a.mu.Lock()
	for a.busy && ctx.Err() == nil {
		a.idle.Wait()
	}
	busy := a.busy
	a.mu.Unlock()
	err := a.Check()
	if busy {
		err = errors.Join(err, a.folder.wrap(context.Cause(ctx), "wait for the background"))
	}
	return err
}

// Close waits for all saves and returns errors as Check. The folder stays open.
func (a *Async) Close() error {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	return a.Wait(context.Background())
}

// Replaced returns how many checkpoints were replaced unwritten.
func (a *Async) Replaced() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.replaced
}

func (d *draft) copyTensors(ctx context.Context, buffers map[string][]byte) error {
	for t := range d.all() {
		size, err := t.tensor().ByteSize()
		if err != nil {
			return err
		}
		to := &room{ctx: ctx, memory: buffers[t.Name]}
		if int64(cap(to.memory)) < size {
			to.memory = make([]byte, size)
		}
		to.memory = to.memory[:size]
		if err := t.writeTo(to); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		if int64(to.n) != size {
			return fmt.Errorf("tensor %q: Write gave %d bytes, dims %v of %v take %d", t.Name, to.n, t.Dims, t.DType, size)
		}
		t.Data, t.Write = to.memory, nil
	}
	return nil
}

func (d *draft) buffers() map[string][]byte {
	buffers := make(map[string][]byte, len(d.tensors))
	for t := range d.all() {
		buffers[t.Name] = t.Data
	}
	return buffers
}

type room struct {
	ctx    context.Context
	memory []byte
	n      int
}

func (r *room) Write(p []byte) (int, error) {
	switch {
	case r.ctx.Err() != nil:
		return 0, context.Cause(r.ctx)
	case len(p) > len(r.memory)-r.n:
		return 0, fmt.Errorf("Write gives more bytes than dims and dtype take: %w", safetensors.ErrLimit)
	}
	r.n += copy(r.memory[r.n:], p) // copies nothing if p is AvailableBuffer's memory
	return len(p), nil
}

var _ abilities.MemoryWriter = (*room)(nil)

func (r *room) AvailableBuffer() []byte { return r.memory[r.n:r.n:len(r.memory)] }
