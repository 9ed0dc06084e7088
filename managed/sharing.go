package managed

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// read lets the caller read values beside others that read, when the steps that were begun are over.
func (s *State) read(ctx context.Context) (done func(), err error) {
	if err := s.gate.Read(ctx); err != nil {
		return nil, of(err)
	}
	if err := s.settled(); err != nil {
		s.gate.DoneReading()
		return nil, err
	}
	return s.gate.DoneReading, nil
}

// beside lets the caller read values, and what steps are built from.
func (s *State) beside(ctx context.Context) (done func(), err error) {
	if err := s.structure.Change(ctx); err != nil {
		return nil, of(err)
	}
	if _, err := s.read(ctx); err != nil {
		s.structure.DoneChanging()
		return nil, err
	}
	return func() { s.gate.DoneReading(); s.structure.DoneChanging() }, nil
}

// alone lets the caller change anything. Of the steps that were begun it does not wait for the last.
func (s *State) alone(ctx context.Context) (done func(), err error) {
	if err := s.structure.Change(ctx); err != nil {
		return nil, of(err)
	}
	if err := s.gate.Change(ctx); err != nil {
		s.structure.DoneChanging()
		return nil, of(err)
	}
	return func() { s.gate.DoneChanging(); s.structure.DoneChanging() }, nil
}

// look lets the caller read what is not gone when the state is closed, by a method that has no error to give: nobody changes
// it then, nor while a function of a step asks, which has it.
func (s *State) look() (done func()) {
	switch err := s.gate.Read(context.Background()); {
	case err == nil:
		return s.gate.DoneReading
	case errors.Is(err, ErrClosed):
		s.gate.Close() // waits
	}
	return func() {}
}

// lookAtStructure is look at what steps are built from.
func (s *State) lookAtStructure() (done func()) {
	if err := s.structure.Change(context.Background()); err != nil {
		if errors.Is(err, ErrClosed) {
			s.structure.Close() // waits
		}
		return s.look()
	}
	looked := s.look()
	return func() { looked(); s.structure.DoneChanging() }
}

// of says of what the error of a gate is.
func of(err error) error {
	if errors.Is(err, ErrClosed) {
		return fmt.Errorf("the state: %w", err)
	}
	return err
}

// notInBuild sends those away who would wait for themselves: the function of a step, which runs while its state is held.
func notInBuild() error {
	callers := make([]uintptr, 512)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if strings.HasSuffix(f.Function, "managed.(*Stepper).compile") || strings.Contains(f.Function, "managed.(*Stepper).compile.func") {
			return fmt.Errorf("the state is %w: the function of a step that is being built cannot wait for the state: ask before the step", ErrBusy)
		}
	}
	return nil
}

// tail is the last run of a step, which may go on. Those who read share it, so it has a lock of its own.
type tail struct {
	mu      sync.Mutex
	running strategies.Running // nil if it is known to be over
	lost    error              // why the values are gone
}

// settled waits for the last step, and tells whether the values are there.
func (t *tail) settled() error {
	if err := t.follow(nil); err != nil {
		return err
	}
	return t.usable()
}

// usable tells whether the values are there, as far as that is known.
func (t *tail) usable() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost != nil {
		return fmt.Errorf("an earlier step failed: %w", t.lost)
	}
	return nil
}

// follow has another run take the place of the running one, which is waited for: with one run on the device and one behind
// it, the device always has work.
func (t *tail) follow(next strategies.Running) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.running
	t.running = next
	if last == nil {
		return nil
	}
	err := last.Wait()
	if errors.Is(err, strategies.ErrStateLost) {
		t.lost = err
	}
	return err
}

// fails notes an error by which the values are lost.
func (t *tail) fails(err error) {
	if errors.Is(err, strategies.ErrStateLost) {
		t.mu.Lock()
		t.lost = err
		t.mu.Unlock()
	}
}

// pin keeps a value as it is for those who want to read it later on, without the gate. Who is to change the value then does so
// on a copy, and the pin's is freed by the last who holds it.
type pin struct {
	on     strategies.Strategy
	buffer strategies.Buffer

	mu    sync.Mutex
	users int
	left  bool // the state has another buffer now
}

// hold pins a value; the state is being read.
func (s *State) hold(at int) *pin {
	s.pinning.Lock()
	defer s.pinning.Unlock()
	p := s.pins[at]
	if p == nil {
		p = &pin{on: s.strategy, buffer: s.values[at].buffer}
		s.pins[at] = p
	}
	p.mu.Lock()
	p.users++
	p.mu.Unlock()
	return p
}

// release gives one hold of the value up.
func (p *pin) release() error {
	p.mu.Lock()
	p.users--
	free := p.left && p.users == 0
	p.mu.Unlock()
	if !free {
		return nil
	}
	return ignoreClosed(p.on.Free(p.buffer))
}

// leave is the state's parting from the value, and tells whether others still want it.
func (p *pin) leave() (held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	return p.users > 0
}

// held tells whether somebody wants the value.
func (p *pin) held() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.users > 0
}

// swap gives a value another buffer, and the old one to be freed; nil where others still want it. The state is being changed.
func (s *State) swap(at int, b strategies.Buffer) (old strategies.Buffer) {
	v := &s.values[at]
	old, v.buffer = v.buffer, b
	if p := s.pins[at]; p != nil {
		delete(s.pins, at)
		if p.leave() {
			return nil
		}
	}
	return old
}

// own gives the state a copy of a value that others hold, to be written over. The state is being changed.
func (s *State) own(at int) error {
	p := s.pins[at]
	if p == nil {
		return nil
	}
	if !p.held() {
		delete(s.pins, at) // the value may get another buffer
		return nil
	}
	v := &s.values[at]
	t, err := s.strategy.Fetch(v.buffer)
	var b strategies.Buffer
	if err == nil {
		b, err = s.strategy.Put(v.variable.Path(), t)
	}
	if err != nil {
		return fmt.Errorf("copy %s, which a view or a checkpoint still reads: %w", v.variable.Path(), err)
	}
	return s.strategy.Free(s.swap(at, b))
}

// ignoreClosed is for what is freed after its runtime, which has freed it.
func ignoreClosed(err error) error {
	if errors.Is(err, xla.ErrClosed) {
		return nil
	}
	return err
}

// quoted lists names for a message.
func quoted(names []string) string {
	text := make([]string, len(names))
	for i, name := range names {
		text[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(text, ", ")
}
