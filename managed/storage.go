package managed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// storage is where a state's values are. Its methods are called with the state's gates held, see [access].
type storage struct {
	strategy strategies.Strategy
	// moves counts the moves to other strategies: what was compiled before the last is of no use.
	moves int
	// values holds the variables in the order in which steps came to need them; index finds them.
	values []value
	index  map[*variable]int
	last   lastRun
	// pins are those of values that others still want to read when they are not the state's any more, by their places.
	// Readers make them, beside each other.
	pins    map[int]*pin
	pinning sync.Mutex
	// resident are the sets that the strategy has, field by field.
	resident map[*data.Resident][]strategies.Buffer
	unread   unread
	// evaluations are the steps whose metrics are gathered apart, the newest last.
	evaluations []evaluating
}

type value struct {
	variable *variable
	shape    Shape // the variable's; that of a variable is another one while a step is built under a policy
	buffer   strategies.Buffer
}

func (s *storage) names() []string {
	names := make([]string, len(s.values))
	for i := range s.values {
		names[i] = s.values[i].variable.Path()
	}
	return names
}

func (s *storage) variables() []*variable {
	variables := make([]*variable, len(s.values))
	for i := range s.values {
		variables[i] = s.values[i].variable
	}
	return variables
}

// at is the place of a variable, negative where the state has none of the name.
func (s *storage) at(name string) int {
	return slices.IndexFunc(s.values, func(v value) bool { return v.variable.Path() == name })
}

// add takes in a variable that a step has brought in.
func (s *storage) add(v *variable, b strategies.Buffer) {
	s.index[v] = len(s.values)
	s.values = append(s.values, value{variable: v, shape: v.Shape(), buffer: b})
}

// putEach moves a tensor for each value to a strategy, all or none. tensor gives that of a place, which is used up; nil
// leaves the place without a buffer.
func (s *storage) putEach(
	ctx context.Context, to strategies.Strategy, tensor func(at int) (*Tensor, error),
) ([]strategies.Buffer, error) {
	buffers := make([]strategies.Buffer, len(s.values))
	for i, v := range s.values {
		err := context.Cause(ctx)
		var t *Tensor
		if err == nil {
			t, err = tensor(i)
		}
		if err == nil && t != nil {
			buffers[i], err = to.Put(v.variable.Path(), t)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", v.variable.Path(), err), to.Free(buffers[:i]...))
		}
	}
	return buffers, nil
}

// copyTo copies all values to another strategy, or none. They go through the host, one at a time.
func (s *storage) copyTo(ctx context.Context, to strategies.Strategy) ([]strategies.Buffer, error) {
	return s.putEach(ctx, to, func(at int) (*Tensor, error) { return s.strategy.Fetch(s.values[at].buffer) })
}

// replace gives the values these buffers, but for those that are nil, and frees the ones of before. Lost values are
// good again.
func (s *storage) replace(buffers []strategies.Buffer) error {
	for i := range buffers {
		if buffers[i] != nil {
			buffers[i] = s.swap(i, buffers[i])
		}
	}
	if s.last.lost != nil { // nobody can tell what is left of the old values
		s.last.lost = nil
		return nil
	}
	return s.strategy.Free(buffers...)
}

// set gives a value a tensor, which is used up.
func (s *storage) set(at int, t *Tensor) error {
	b, err := s.strategy.Put(s.values[at].variable.Path(), t)
	if err != nil {
		return err
	}
	return s.strategy.Free(s.swap(at, b))
}

// swap gives a value another buffer, and the old one to be freed; nil where others still want it.
func (s *storage) swap(at int, b strategies.Buffer) (old strategies.Buffer) {
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

// copyIfPinned gives the state a copy of a value that others hold, to be written over.
func (s *storage) copyIfPinned(at int) error {
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

// pin pins a value.
func (s *storage) pin(at int) *pin {
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

// pin keeps a value as it is for those who want to read it later on, without a gate. Who is to change the value then
// does so on a copy, and the pin's is freed by the last who holds it.
type pin struct {
	on     strategies.Strategy
	buffer strategies.Buffer

	mu    sync.Mutex
	users int
	left  bool // the state has another buffer now
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

// ignoreClosed is for what is freed after its runtime, which has freed it.
func ignoreClosed(err error) error {
	if errors.Is(err, xla.ErrClosed) {
		return nil
	}
	return err
}

// lastRun is the last run of a step, which may go on. Those who read share it, so it has a lock of its own.
type lastRun struct {
	mu      sync.Mutex
	running strategies.Running // nil if it is known to be over
	lost    error              // why the values are gone
}

// settled waits for the run, and gives an error where the values are lost.
func (r *lastRun) settled() error {
	if err := r.follow(nil); err != nil {
		return err
	}
	return r.usable()
}

// usable is an error where the values are lost, as far as that is known.
func (r *lastRun) usable() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost != nil {
		return fmt.Errorf("an earlier step failed: %w", r.lost)
	}
	return nil
}

// follow has another run take the place of the running one, which is waited for: with one run on the device and one
// behind it, the device always has work.
func (r *lastRun) follow(next strategies.Running) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.running
	r.running = next
	if last == nil {
		return nil
	}
	err := last.Wait()
	if errors.Is(err, strategies.ErrStateLost) {
		r.lost = err
	}
	return err
}

// fails notes an error by which the values are lost.
func (r *lastRun) fails(err error) {
	if errors.Is(err, strategies.ErrStateLost) {
		r.mu.Lock()
		r.lost = err
		r.mu.Unlock()
	}
}
