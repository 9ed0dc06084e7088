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
	Variable = model.Variable
	Tensor   = tensors.Tensor
)

// Store has a state's values. Its methods need the gates held, except for [Access] and Close.
type Store struct {
	Access
	Last     Last
	strategy strategies.Strategy
	// moves counts changes of strategy or places, which make programs stale.
	moves int
	// values are in creation order.
	values []value
	index  map[*Variable]int
	// pins are by place; concurrent readers make them.
	pins     map[int]*Pin
	pinning  sync.Mutex
	resident map[*data.Resident][]compute.Buffer
	unread   unread
}

type value struct {
	variable *Variable
	shape    shapes.Shape // without a policy's cast
	buffer   compute.Buffer
	names    []string // of packed scalars, else nil
	apart    bool     // the scalars may differ
}

func (s *Store) Init(on strategies.Strategy) {
	s.strategy, s.index, s.pins = on, map[*Variable]int{}, map[int]*Pin{}
	s.resident = map[*data.Resident][]compute.Buffer{}
}

func (s *Store) Strategy() strategies.Strategy { return s.strategy }

func (s *Store) Moves() int { return s.moves }

func (s *Store) Len() int { return len(s.values) }

func (s *Store) Variable(at int) *Variable { return s.values[at].variable }

func (s *Store) Shape(at int) shapes.Shape { return s.values[at].shape }

func (s *Store) Buffer(at int) compute.Buffer { return s.values[at].buffer }

func (s *Store) Fetch(at int) (*Tensor, error) { return s.strategy.Fetch(s.values[at].buffer) }

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

// Place is negative without a value.
func (s *Store) Place(v *Variable) int {
	if at, known := s.index[v]; known {
		return at
	}
	return -1
}

func (s *Store) Names() []string {
	names := make([]string, 0, len(s.values))
	for i := range s.values {
		names = append(names, s.NamesOf(i)...)
	}
	return names
}

// NamesOf returns the variable's name or those of its packed scalars.
func (s *Store) NamesOf(at int) []string {
	if names := s.values[at].names; names != nil {
		return names
	}
	return []string{s.values[at].variable.Path()}
}

func (s *Store) Packs(at int) bool { return s.values[at].names != nil }

func (s *Store) Apart(at int) bool { return s.values[at].apart }

func (s *Store) NotePacks(of *model.Store) {
	for i := range s.values {
		if v := &s.values[i]; v.names != nil {
			v.apart = packs.Apart(of, v.variable.Path())
		}
	}
}

func (s *Store) Variables() []*Variable {
	variables := make([]*Variable, len(s.values))
	for i := range s.values {
		variables[i] = s.values[i].variable
	}
	return variables
}

// Find returns a value's place, negative if none, and its element in a pack, negative for a whole variable.
func (s *Store) Find(name string) (at, element int) {
	at = slices.IndexFunc(s.values, func(v value) bool { return v.variable.Path() == name || slices.Contains(v.names, name) })
	if at < 0 {
		return -1, -1
	}
	return at, slices.Index(s.values[at].names, name)
}

// PutEach moves a tensor per value to the strategy, all or none, for Replace, and uses them up. A nil tensor leaves no
// buffer.
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

// copyTo copies all or none through the host, one at a time.
func (s *Store) copyTo(ctx context.Context, to strategies.Strategy) ([]compute.Buffer, error) {
	return s.putEach(ctx, to, func(at int) (*Tensor, error) { return s.strategy.Fetch(s.values[at].buffer) })
}

// Replace sets the non-nil buffers and frees the old ones. It repairs lost values.
func (s *Store) Replace(buffers []compute.Buffer) error {
	for i := range buffers {
		if buffers[i] != nil {
			buffers[i] = s.swap(i, buffers[i])
		}
	}
	if s.Last.lost != nil { // unknown which old buffers exist
		s.Last.lost = nil
		return nil
	}
	return s.strategy.Free(buffers...)
}

// Set uses up the tensor.
func (s *Store) Set(at int, t *Tensor) error {
	b, err := s.strategy.Put(s.values[at].variable.Path(), t)
	if err != nil {
		return err
	}
	return s.strategy.Free(s.swap(at, b))
}

// swap returns the old buffer to free, or nil if pinned.
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

// Overwritten returns the buffer that a run will change, copied if pinned.
func (s *Store) Overwritten(at int) (compute.Buffer, error) {
	if len(s.pins) > 0 {
		if err := s.copyIfPinned(at); err != nil {
			return nil, err
		}
	}
	return s.values[at].buffer, nil
}

// Changed sets the run's result for Overwritten.
func (s *Store) Changed(at int, b compute.Buffer) { s.values[at].buffer = b }

// Abandon drops a lost value without freeing it.
func (s *Store) Abandon(at int) { s.swap(at, nil) }

func (s *Store) copyIfPinned(at int) error {
	p := s.pins[at]
	if p == nil {
		return nil
	}
	if !p.held() {
		delete(s.pins, at)
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

// Keep changes places.
func (s *Store) Keep(which func(*Variable) bool) error {
	values, pins := s.values, s.pins
	var left []value
	s.values, s.pins, s.index = nil, map[int]*Pin{}, map[*Variable]int{}
	for i, v := range values {
		p := pins[i]
		if !which(v.variable) {
			if p == nil || !p.leave() { // else the last holder frees it
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

// MoveTo copies all values to another strategy, and reads or frees the old one's arrays. If the copy fails, nothing
// changes.
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

// CopyInto copies all values by places to an empty store with the variables made.
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

// Close waits for running uses, frees all values once, and refuses later uses. besides frees other buffers, unless
// values are lost.
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

func (s *Store) leaveSets() error {
	var errs []error
	for _, buffers := range s.resident {
		errs = append(errs, s.strategy.Free(buffers...))
	}
	clear(s.resident)
	return errors.Join(errs...)
}
