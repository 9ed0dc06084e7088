package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/internal/packs"
	"github.com/lazo-ml/lazo/strategies"
)

type (
	// Variable is one of the variables of a model.
	Variable = model.Variable
	// Tensor is a value on the host.
	Tensor = tensors.Tensor
)

// Store is where the values of a state are. Its methods are called with its gates held, but for those of [Access] and
// Close.
type Store struct {
	Access
	Last     Last // the last run that changed values, or that only read them
	strategy strategies.Strategy
	// moves counts the moves to other strategies: what was compiled before the last is of no use.
	moves int
	// values holds the variables in the order in which steps came to need them; index finds them.
	values []value
	index  map[*Variable]int
	// pins are those of values that others still want to read when they are not the state's any more, by their places.
	// Readers make them, next to each other.
	pins    map[int]*Pin
	pinning sync.Mutex
	// resident are the sets that the strategy has, field by field.
	resident map[*data.Resident][]compute.Buffer
	unread   unread
}

type value struct {
	variable *Variable
	shape    shapes.Shape // the variable's; that of a variable is another one while a step is built under a policy
	buffer   compute.Buffer
	names    []string // of its elements, each a value of its own outside of the store; nil for all but packs
	apart    bool     // they may differ
}

// Init makes an empty store.
func (s *Store) Init(on strategies.Strategy) {
	s.strategy, s.index, s.pins = on, map[*Variable]int{}, map[int]*Pin{}
	s.resident = map[*data.Resident][]compute.Buffer{}
}

// Strategy has the values.
func (s *Store) Strategy() strategies.Strategy { return s.strategy }

// Moves counts the moves, and the changes of the places of values.
func (s *Store) Moves() int { return s.moves }

// Len is how many values there are; each has a place below it.
func (s *Store) Len() int { return len(s.values) }

// Variable is the one of a place.
func (s *Store) Variable(at int) *Variable { return s.values[at].variable }

// Shape is that of a place.
func (s *Store) Shape(at int) shapes.Shape { return s.values[at].shape }

// Buffer is what the strategy has of a place.
func (s *Store) Buffer(at int) compute.Buffer { return s.values[at].buffer }

// Fetch copies the value of a place to the host.
func (s *Store) Fetch(at int) (*Tensor, error) { return s.strategy.Fetch(s.values[at].buffer) }

// FetchAll copies all values to the host.
func (s *Store) FetchAll(ctx context.Context) ([]*Tensor, error) {
	all := make([]*Tensor, len(s.values))
	for i, v := range s.values {
		err := context.Cause(ctx)
		if err == nil {
			all[i], err = s.strategy.Fetch(v.buffer)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.variable.Path(), err)
		}
	}
	return all, nil
}

// Place is that of a variable; negative where it has no value yet.
func (s *Store) Place(v *Variable) int {
	if at, known := s.index[v]; known {
		return at
	}
	return -1
}

// Names are the full names of all values, by places.
func (s *Store) Names() []string {
	names := make([]string, 0, len(s.values))
	for i := range s.values {
		names = append(names, s.NamesOf(i)...)
	}
	return names
}

// NamesOf are the full names of the values at a place: that of the variable, or those of the scalars that it packs.
func (s *Store) NamesOf(at int) []string {
	if names := s.values[at].names; names != nil {
		return names
	}
	return []string{s.values[at].variable.Path()}
}

// Packs reports whether the variable of a place packs scalars.
func (s *Store) Packs(at int) bool { return s.values[at].names != nil }

// Apart reports whether the scalars of a pack may differ.
func (s *Store) Apart(at int) bool { return s.values[at].apart }

// NotePacks notes which packs have scalars that may differ.
func (s *Store) NotePacks(of *model.Store) {
	for i := range s.values {
		if v := &s.values[i]; v.names != nil {
			v.apart = packs.Apart(of, v.variable.Path())
		}
	}
}

// Variables are all that have values, by places.
func (s *Store) Variables() []*Variable {
	variables := make([]*Variable, len(s.values))
	for i := range s.values {
		variables[i] = s.values[i].variable
	}
	return variables
}

// Find returns the place of a value by its full name, negative where the state has none of the name, and which element
// of the variable it is, negative where it is all of it.
func (s *Store) Find(name string) (at, element int) {
	at = slices.IndexFunc(s.values, func(v value) bool { return v.variable.Path() == name || slices.Contains(v.names, name) })
	if at < 0 {
		return -1, -1
	}
	return at, slices.Index(s.values[at].names, name)
}

// PutEach moves a tensor for each value to the strategy, all or none, for Replace. tensor gives that of a place, which
// is used up; nil leaves the place without a buffer.
func (s *Store) PutEach(ctx context.Context, tensor func(at int) (*Tensor, error)) ([]compute.Buffer, error) {
	return s.putEach(ctx, s.strategy, tensor)
}

func (s *Store) putEach(
	ctx context.Context, to strategies.Strategy, tensor func(at int) (*Tensor, error),
) ([]compute.Buffer, error) {
	buffers := make([]compute.Buffer, len(s.values))
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
func (s *Store) copyTo(ctx context.Context, to strategies.Strategy) ([]compute.Buffer, error) {
	return s.putEach(ctx, to, func(at int) (*Tensor, error) { return s.strategy.Fetch(s.values[at].buffer) })
}

// Replace gives the values these buffers, but for those that are nil, and frees the ones of before. Lost values are
// good again.
func (s *Store) Replace(buffers []compute.Buffer) error {
	for i := range buffers {
		if buffers[i] != nil {
			buffers[i] = s.swap(i, buffers[i])
		}
	}
	if s.Last.lost != nil { // nobody can tell what is left of the old values
		s.Last.lost = nil
		return nil
	}
	return s.strategy.Free(buffers...)
}

// Set gives a value a tensor, which is used up.
func (s *Store) Set(at int, t *Tensor) error {
	b, err := s.strategy.Put(s.values[at].variable.Path(), t)
	if err != nil {
		return err
	}
	return s.strategy.Free(s.swap(at, b))
}

// swap gives a value another buffer, and the old one to be freed; nil where others still want it.
func (s *Store) swap(at int, b compute.Buffer) (old compute.Buffer) {
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

// Overwritten is the buffer of a place, which a run will change: a copy of it, if others hold a pin of the value.
func (s *Store) Overwritten(at int) (compute.Buffer, error) {
	if len(s.pins) > 0 {
		if err := s.copyIfPinned(at); err != nil {
			return nil, err
		}
	}
	return s.values[at].buffer, nil
}

// Changed takes the buffer that a run made of one of Overwritten.
func (s *Store) Changed(at int, b compute.Buffer) { s.values[at].buffer = b }

// Abandon gives up a lost value: nobody can tell what is left to free.
func (s *Store) Abandon(at int) { s.swap(at, nil) }

// copyIfPinned gives the state a copy of a value that others hold.
func (s *Store) copyIfPinned(at int) error {
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
	var b compute.Buffer
	if err == nil {
		b, err = s.strategy.Put(v.variable.Path(), t)
	}
	if err != nil {
		return fmt.Errorf("copy %s, which a view or a checkpoint still reads: %w", v.variable.Path(), err)
	}
	return s.strategy.Free(s.swap(at, b))
}

// Keep leaves out the values of other variables. The places of the others change, so what was compiled is of no use.
func (s *Store) Keep(which func(*Variable) bool) error {
	values, pins := s.values, s.pins
	var left []value
	s.values, s.pins, s.index = nil, map[int]*Pin{}, map[*Variable]int{}
	for i, v := range values {
		p := pins[i]
		if !which(v.variable) {
			if p == nil || !p.leave() { // else who holds it frees it
				left = append(left, v)
			}
			continue
		}
		s.index[v.variable] = len(s.values)
		if p != nil {
			s.pins[len(s.values)] = p
		}
		s.values = append(s.values, v)
	}
	s.moves++
	var err error
	for _, v := range left {
		if freeErr := s.strategy.Free(v.buffer); err == nil {
			err = freeErr
		}
	}
	return gate.Once(err)
}

// MoveTo copies all values to another strategy, where they are from now on, and reads or frees what the old one has
// besides. After an error of the copy nothing has changed; moved tells whether the values are the new strategy's.
func (s *Store) MoveTo(ctx context.Context, to strategies.Strategy) (moved bool, err error) {
	from := s.strategy
	if reflect.ValueOf(from).Comparable() && reflect.ValueOf(to).Comparable() && from == to {
		return true, nil
	}
	buffers, err := s.copyTo(ctx, to)
	if err != nil {
		return false, err
	}
	logsErr := errors.Join(s.unread.drain(0), s.leaveSets())
	freeErr := s.Replace(buffers)
	s.strategy = to
	s.moves++
	return true, gate.Once(errors.Join(logsErr, freeErr))
}

// CopyInto copies all values to a store without any, for other variables, by places.
func (s *Store) CopyInto(ctx context.Context, c *Store, made []*Variable) error {
	buffers, err := s.copyTo(ctx, c.strategy)
	if err != nil {
		return err
	}
	for i, v := range made {
		c.index[v] = i
		c.values = append(c.values, value{variable: v, shape: s.values[i].shape, buffer: buffers[i],
			names: s.values[i].names, apart: s.values[i].apart})
	}
	return nil
}

// Close waits for what goes on, frees all values once, and lets nobody in any more. besides frees what else is on the
// devices; of lost values it is not called.
func (s *Store) Close(besides func() error) error {
	_ = s.structure.Close(nil)
	return s.Access.values.Close(func() error {
		errs := []error{s.Last.Follow(nil), s.unread.drain(0)}
		lost := s.Last.Lost() != nil
		for i := range s.values {
			if old := s.swap(i, nil); !lost {
				errs = append(errs, s.strategy.Free(old))
			}
		}
		if !lost {
			errs = append(errs, besides())
		}
		return gate.Once(errors.Join(append(errs, s.leaveSets())...))
	})
}
