package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/safetensors"
)

// Async saves in the background: its Save takes as long as copying the content in memory does. One checkpoint is
// written at a time and one may wait; a newer one takes the place of the one that waits, which is never written. So a
// disk that is slower than the interval between checkpoints costs checkpoints, not time, and never more memory than two
// copies of the content, which are kept for the next ones. Orbax waits for the one being written; we do not, because a
// step of training is worth more than a checkpoint that the next one replaces. One that must not be replaced is
// followed by Wait.
type Async struct {
	folder  *Folder
	another []Step // of another run, which the first save removes; for the goroutine that writes

	mu       sync.Mutex
	idle     sync.Cond // broadcast when busy becomes false
	busy     bool
	present  *draft // that which is being written
	waiting  *draft
	spare    map[string][]byte // buffers of a checkpoint that was written
	failed   []error
	failing  atomic.Bool // there are some in failed
	replaced int64
	closed   bool
}

// Async returns a background saver for the folder. Nothing else should save into the folder meanwhile.
func (f *Folder) Async() *Async {
	a := &Async{folder: f}
	a.idle.L = &a.mu
	return a
}

// supersede has the first save that is complete take the place of these steps, which are another run's: they are
// removed right before it is given its name. Call it before the first Save.
func (a *Async) supersede(steps []Step) { a.another = slices.Clone(steps) }

// backgroundError is a checkpoint that could not be saved in the background, or not pruned ([ErrNotPruned]).
type backgroundError struct {
	Step Step
	Dir  string // of the folder
	Err  error
}

func (e *backgroundError) Error() string {
	return fmt.Sprintf("checkpoint: save step %d in %s, in the background: %v", e.Step, e.Dir, e.Err)
}

func (e *backgroundError) Unwrap() error { return e.Err }

// Save copies the content, so that it can be changed as soon as Save returns, and has it written. An error of the
// content itself (a name, a size, a panic of Write) is returned at once, and nothing is written: if it came from a
// Write, not even the one that waited, whose memory the copy took. Errors of earlier saves in the background come here
// too, each once and with its step: this save is made nevertheless. The values of ctx and its end count for
// the copy alone.
func (a *Async) Save(ctx context.Context, step Step, content Content) error {
	d, err := newDraft(step, content)
	if err == nil {
		err = a.copy(ctx, d)
	}
	if err != nil && content.Cut() {
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

// begin gives buffers for a copy: those of the checkpoint that waits, which is then replaced, else those of one that
// was written.
func (a *Async) begin() (buffers map[string][]byte, replaced *draft, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, nil, errClosed
	}
	if d := a.waiting; d != nil {
		a.waiting = nil
		a.replaced++
		// As it should be where steps are fast: Replaced counts them.
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

// Check gives the errors of saves in the background that nobody has got yet, without waiting for one.
func (a *Async) Check() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := errors.Join(a.failed...)
	a.failed = nil
	a.failing.Store(false)
	return err
}

// hasFailed reports whether [Async.Check] has errors to give. It waits for nothing.
func (a *Async) hasFailed() bool { return a.failing.Load() }

// writing reports whether tensors are being written, or wait to be, by this process or by those that it saves together
// with. It waits for nothing.
func (a *Async) writing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting != nil || a.present != nil && !a.present.written.Load()
}

// writes reports whether a checkpoint is being written or waits. It waits for nothing.
func (a *Async) writes() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.busy
}

// lastCall says that the other processes write no more, as where one of them could not, or the run has failed: rank 0
// waits only ten seconds longer for parts that are not there.
func (a *Async) lastCall() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range []*draft{a.present, a.waiting} {
		if d != nil {
			d.overOnce.Do(func() { close(d.over) })
		}
	}
}

// Wait waits until nothing is being written or waits, or ctx ends, and gives the errors as Check does.
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

// Close waits for what is being written and what waits, and gives the errors as Check does. The folder stays open.
func (a *Async) Close() error {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	return a.Wait(context.Background())
}

// Replaced is how many checkpoints were not written because a newer one came.
func (a *Async) Replaced() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.replaced
}

// copyTensors makes the draft independent of the caller's memory.
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

// room is a writer into memory of a tensor's size. It refuses what does not fit, and asks ctx before each piece.
type room struct {
	ctx    context.Context
	memory []byte
	n      int // bytes written
}

func (r *room) Write(p []byte) (int, error) {
	switch {
	case r.ctx.Err() != nil:
		return 0, context.Cause(r.ctx)
	case len(p) > len(r.memory)-r.n:
		return 0, fmt.Errorf("Write gives more bytes than dims and dtype take: %w", safetensors.ErrLimit)
	}
	r.n += copy(r.memory[r.n:], p) // of what lies there already, Go copies nothing
	return len(p), nil
}

var _ abilities.MemoryWriter = (*room)(nil)

// AvailableBuffer is where the next bytes go.
func (r *room) AvailableBuffer() []byte { return r.memory[r.n:r.n:len(r.memory)] }
