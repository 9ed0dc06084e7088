package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/packs"
	"github.com/lazo-ml/lazo/xla"
)

func (s *Store) Fresh(of *model.Store) (fresh []*Variable) {
	for v := range of.IterVariables() {
		if _, known := s.index[v]; !known {
			fresh = append(fresh, v)
		}
	}
	return fresh
}

// Adopt sets a step's new variables to given or random values on the devices. After an error there are none, and a
// later step draws the same.
func (s *Store) Adopt(fresh []*Variable, of *model.Store, given *Given) error {
	if err := given.give(fresh); err != nil {
		return err
	}
	drawing := drawing{s, of, given.Late}
	lent, err := drawing.lendRandomState()
	if err != nil {
		return err
	}
	moved := fresh
	if lent >= 0 {
		moved = append(slices.Clip(fresh), s.values[lent].variable)
	}
	buffers, err := drawing.draw(moved)
	if err != nil {
		return fmt.Errorf("initial values: %w", err)
	}
	for i, v := range fresh {
		s.index[v] = len(s.values)
		s.values = append(s.values, value{variable: v, shape: v.Shape(), buffer: buffers[i], names: packs.Names(of, v.Path())})
	}
	if err := given.taken(fresh); err != nil {
		return fmt.Errorf("initial values: %w", err)
	}
	if lent < 0 {
		return nil
	}
	if err := s.strategy.Free(s.swap(lent, buffers[len(fresh)])); err != nil {
		return fmt.Errorf("free the old random state: %w", err)
	}
	return nil
}

func (g *Given) taken(fresh []*Variable) error {
	var errs []error
	for _, v := range fresh {
		name := v.Path()
		switch {
		case g.Tensors[name] != nil:
			delete(g.Tensors, name)
		case g.Initial[name] != nil:
			delete(g.Initial, name)
			if g.spent == nil {
				g.spent = map[string]bool{}
			}
			g.spent[name] = true
		default:
			continue
		}
		errs = append(errs, Empty(v))
	}
	return errors.Join(errs...)
}

type drawing struct {
	*Store
	of   *model.Store
	late Late
}

// RandomName is the full name of GoMLX's random state.
const RandomName = model.RootScopePath + model.RNGStateVariableName

// drawnAtOnce bounds the host's memory: the values drawn before they are moved.
const drawnAtOnce = 1 << 20

func (s *drawing) draw(fresh []*Variable) (_ []compute.Buffer, err error) {
	if s.strategy.Runtime().Topology() != "" {
		return s.describe(fresh)
	}
	buffers := make([]compute.Buffer, len(fresh))
	made := buffers
	var drawn []int
	for i, v := range fresh {
		if !v.HasValue() {
			drawn = append(drawn, i)
		}
	}
	random := s.of.GetVariable(RandomName)
	before, err := HostValue(random)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.strategy.Free(made...))
			if random != nil {
				err = errors.Join(err, random.SetValuePreservingOld(before)) // to draw the same again
			}
			for _, i := range drawn {
				err = errors.Join(err, fresh[i].SetValuePreservingOld(nil))
			}
		}
	}()
	// Later variables get an empty value: GoMLX draws for all without one.
	for _, i := range drawn {
		if err := fresh[i].SetValuePreservingOld(tensors.FromShape(fresh[i].Shape())); err != nil {
			return nil, err
		}
		if err := Empty(fresh[i]); err != nil {
			return nil, err
		}
	}
	for waiting := drawn; len(waiting) > 0; {
		n, size := 0, 0
		for n == 0 || n < len(waiting) && size+fresh[waiting[n]].Shape().Size() <= drawnAtOnce {
			size += fresh[waiting[n]].Shape().Size()
			n++
		}
		for _, i := range waiting[:n] {
			if err := fresh[i].SetValuePreservingOld(nil); err != nil {
				return nil, err
			}
		}
		if err := s.initialize(); err != nil {
			return nil, err
		}
		for _, i := range waiting[:n] {
			if buffers[i], err = s.put(fresh[i]); err == nil {
				err = Empty(fresh[i])
			}
			if err != nil {
				return nil, err
			}
		}
		if waiting = waiting[n:]; n < len(drawn) { // frees host memory
			debug.FreeOSMemory()
		}
	}
	for i, v := range fresh { // those with values, and the random state
		if buffers[i] == nil {
			// a copy: an error needs the value again, and a strategy uses up its tensor
			var t *Tensor
			if t, err = s.late.valueOf(v); err == nil {
				buffers[i], err = s.strategy.Put(v.Path(), t)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", v.Path(), err)
			}
		}
	}
	return buffers, nil
}

func (s *drawing) describe(fresh []*Variable) (_ []compute.Buffer, err error) {
	on := s.strategy
	buffers := make([]compute.Buffer, 0, len(fresh))
	var set []*Variable
	defer func() {
		if err != nil {
			err = errors.Join(err, on.Free(buffers...))
			for _, v := range set {
				err = errors.Join(err, v.SetValuePreservingOld(nil))
			}
		}
	}()
	for _, v := range fresh {
		abstract, err := on.Runtime().Abstract(0, v.Shape())
		if err != nil {
			return nil, err
		}
		t, err := tensors.FromBuffer(abstract)
		if err != nil {
			return nil, err
		}
		if !v.HasValue() { // GoMLX checks for a value
			set = append(set, v)
			if err := v.SetValuePreservingOld(t); err != nil {
				return nil, err
			}
		}
		b, err := on.Put(v.Path(), t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.Path(), err)
		}
		buffers = append(buffers, b)
	}
	return buffers, nil
}

// HostValue copies a host value, or returns nil.
func HostValue(v *Variable) (*Tensor, error) {
	if v == nil || !v.HasValue() {
		return nil, nil
	}
	t, err := v.Value()
	if err != nil {
		return nil, err
	}
	return t.LocalClone()
}

func (l Late) valueOf(v *Variable) (*Tensor, error) {
	t, err := v.Value()
	if err != nil {
		return nil, err
	}
	return l.CopyOf(t)
}

// Empty frees a variable's memory; GoMLX still sees a value.
func Empty(v *Variable) error {
	t, err := v.Value()
	if err == nil {
		t.FinalizeLocal()
	}
	return err
}

func (s *drawing) put(v *Variable) (compute.Buffer, error) {
	t, err := v.Value()
	if err == nil {
		err = t.ToLocal()
	}
	var b compute.Buffer
	if err == nil {
		b, err = s.strategy.Put(v.Path(), t)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.Path(), err)
	}
	return b, nil
}

// initialize draws on the host (docs/decisions/0015), unless the host backend lacks an operation or dtype. The values
// are the same.
func (s *drawing) initialize() error {
	host, err := xla.Open(context.Background(), xla.Go)
	if err != nil {
		return err
	}
	err = s.of.InitializeVariables(host, nil)
	if err != nil { // possibly a missing operation or dtype
		if s.of.InitializeVariables(s.strategy.Runtime(), nil) == nil {
			err = nil
		}
	}
	// The values leave the host backend; another one needs the random state next.
	if random := s.of.GetVariable(RandomName); err == nil && random != nil {
		var t *Tensor
		if t, err = random.Value(); err == nil {
			err = t.ToLocal()
		}
	}
	return xla.WrapError(err)
}

// lendRandomState lends GoMLX a copy of its random state, which drawing advances. place is -1 for a new variable.
func (s *drawing) lendRandomState() (place int, err error) {
	v := s.of.GetVariable(RandomName)
	i, known := s.index[v]
	if v == nil || !known || s.strategy.Runtime().Topology() != "" {
		return -1, nil
	}
	t, err := s.strategy.Fetch(s.values[i].buffer)
	if err != nil {
		return -1, fmt.Errorf("random state: %w", err)
	}
	return i, v.SetValuePreservingOld(t)
}
