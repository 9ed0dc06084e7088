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

// Fresh are the variables that have no value here yet.
func (s *Store) Fresh(of *model.Store) (fresh []*Variable) {
	for v := range of.IterVariables() {
		if _, known := s.index[v]; !known {
			fresh = append(fresh, v)
		}
	}
	return fresh
}

// Adopt gives values to the variables that a step brought in, the given ones or random ones, and moves them to where
// the strategy wants them. After an error it has added none, and a later step draws the same values.
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

// drawing gives initial values to variables.
type drawing struct {
	*Store
	of   *model.Store
	late Late
}

// RandomName is the full name of the variable that holds GoMLX's random state.
const RandomName = model.RootScopePath + model.RNGStateVariableName

// drawnAtOnce is how many initial values the host draws before they are moved, unless a single variable has more: a
// large state is not to exist twice, not even in the beginning.
const drawnAtOnce = 1 << 20

// draw gives variables that have no value an initial one and moves all. The values are the same however many are drawn
// at once. After an error, nothing is moved, and a later step draws again.
func (s *drawing) draw(fresh []*Variable) (_ []compute.Buffer, err error) {
	if s.strategy.Runtime().Topology() != "" {
		return s.describe(fresh)
	}
	buffers := make([]compute.Buffer, len(fresh))
	made := buffers // a return with an error gives nil
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
				err = errors.Join(err, random.SetValuePreservingOld(before)) // so that it draws the same
			}
			for _, i := range drawn {
				err = errors.Join(err, fresh[i].SetValuePreservingOld(nil))
			}
		}
	}()
	// GoMLX draws for all variables that have no value: those whose turn has not come have an empty one.
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
		if waiting = waiting[n:]; n < len(drawn) { // a large state: what the host needed is not to add up
			debug.FreeOSMemory()
		}
	}
	for i, v := range fresh { // those that came with a value; the random state among them was advanced till now
		if buffers[i] == nil {
			// A copy: after an error another try needs the value again, and a strategy uses up what it is given.
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

// describe gives variables values that have shapes and no numbers, on a machine that is described and not there: to
// draw numbers that nobody can read would take the host's time and memory.
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
		if !v.HasValue() { // GoMLX asks whether it has one
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

// HostValue is a copy of a variable's value on the host; nil where there is none.
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

// valueOf is HostValue for a variable that has a value, maybe one that is still to be read.
func (l Late) valueOf(v *Variable) (*Tensor, error) {
	t, err := v.Value()
	if err != nil {
		return nil, err
	}
	return l.CopyOf(t)
}

// Empty frees the memory of a variable's value; for GoMLX it still has one.
func Empty(v *Variable) error {
	t, err := v.Value()
	if err == nil {
		t.FinalizeLocal()
	}
	return err
}

// put moves a copy of a variable's value to where the strategy wants it.
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

// initialize draws the values of all variables that have none. It does so on the host: a program of random numbers
// for the device takes longer to compile than the host takes to run it (350 ms against 40 ms for 0.8 million values;
// level at 25 million), and the values are the same on every device. Only where the host backend cannot (it lacks
// operations and types), they are drawn on the device.
func (s *drawing) initialize() error {
	host, err := xla.Open(context.Background(), xla.Go)
	if err != nil {
		return err
	}
	err = s.of.InitializeVariables(host, nil)
	if err != nil { // its errors do not tell an operation or a type that it lacks from others
		if s.of.InitializeVariables(s.strategy.Runtime(), nil) == nil {
			err = nil
		}
	}
	// The values belong to the host backend until they are moved; it holds nothing that would have to be freed. The random
	// state is wanted by another one next.
	if random := s.of.GetVariable(RandomName); err == nil && random != nil {
		var t *Tensor
		if t, err = random.Value(); err == nil {
			err = t.ToLocal()
		}
	}
	return xla.WrapError(err)
}

// lendRandomState gives GoMLX a copy of its random state back while it draws initial values: it advances that state as
// it does. The random state is then moved with the new variables, to its place; that is -1 if it is among the new ones.
func (s *drawing) lendRandomState() (place int, err error) {
	v := s.of.GetVariable(RandomName)
	i, known := s.index[v]
	if v == nil || !known || s.strategy.Runtime().Topology() != "" { // nothing is drawn there
		return -1, nil
	}
	t, err := s.strategy.Fetch(s.values[i].buffer)
	if err != nil {
		return -1, fmt.Errorf("random state: %w", err)
	}
	return i, v.SetValuePreservingOld(t)
}
