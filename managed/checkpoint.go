package managed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/shares"
	"github.com/lazo-ml/lazo/internal/shield"
	"github.com/lazo-ml/lazo/managed/internal/store"
	"github.com/lazo-ml/lazo/strategies"
)

var (
	_ checkpoint.State = (*State)(nil)
)

const variablesSection = "variables"

// Content returns the whole state for a checkpoint, by full names, after the started steps. Each value is fetched when
// it is written; a step that changes it earlier copies it first.
//
// Each of several processes returns its [shares.Share] without waiting: its parts of sharded values, and rank 0 all
// else.
func (s *State) Content(ctx context.Context) (checkpoint.Content, error) {
	if ctx == nil {
		return checkpoint.Content{}, fmt.Errorf("managed: content: %w", shield.ErrNoContext)
	}
	c, err := s.content(ctx)
	if err != nil {
		return checkpoint.Content{}, fmt.Errorf("managed: content: %w", err)
	}
	return c, nil
}

func (s *State) content(ctx context.Context) (c checkpoint.Content, err error) {
	if err := context.Cause(ctx); err != nil {
		return c, err
	}
	done, err := s.values.Read(ctx)
	if err != nil {
		return c, err
	}
	defer done()
	if job := s.values.Strategy().Runtime().Job(); job != nil && job.Size() > 1 {
		c.Share = shares.Share{Rank: job.Rank(), Of: job.Size()}
	}
	origins := map[string]origin{}
	add := func(name string, shape shapes.Shape, o origin, write func(io.Writer) error, parts []shares.Part) error {
		dtype, err := inFile(shape.DType)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		c.Tensors = append(c.Tensors, checkpoint.Tensor{Name: name, DType: dtype, Dims: append([]int{}, shape.Dimensions...), Write: write, Parts: parts})
		origins[name] = o
		return nil
	}
	var spare []byte
	for i, v := range s.values.Variables() {
		buffer, shape := s.values.Buffer(i), s.values.Shape(i)
		parts, cut := s.values.Strategy().Parts(buffer)
		if !cut {
			parts = []strategies.Part{{Shape: shape, Buffer: buffer}}
			if c.Share.Rank > 0 {
				continue
			}
		}
		name := v.Path()
		if s.values.Packs(i) {
			for element, name := range s.values.NamesOf(i) {
				if err := add(name, shapes.Make(shape.DType), s.saved.origins[name], s.writeElement(i, element, &spare), nil); err != nil {
					return c, err
				}
			}
			continue
		}
		if _, err := inFile(shape.DType); err != nil {
			return c, fmt.Errorf("%s: %w", name, err)
		}
		given, write := make([]shares.Part, len(parts)), (func(io.Writer) error)(nil)
		for p, part := range parts {
			now := s.values.Pin(i)
			given[p] = shares.Part{Start: part.Start, Dims: part.Shape.Dimensions, Write: func(w io.Writer) error {
				err := now.Write(w, part.Buffer, int(part.Shape.ByteSize()), &spare)
				return errors.Join(err, now.Release())
			}}
		}
		if !cut {
			given, write = nil, given[0].Write
		}
		if err := add(name, shape, s.saved.origins[name], write, given); err != nil {
			return c, err // the garbage collector releases pins
		}
	}
	if r := s.saved.restored; r != nil && r.from == nil && c.Share.Rank == 0 {
		for _, name := range slices.Sorted(maps.Keys(s.model.given.Tensors)) {
			t := s.model.given.Tensors[name]
			write := func(w io.Writer) error { return writeTensor(w, t) }
			if late := s.model.given.Late[t]; late != nil {
				write = late
			}
			if err := add(name, t.Shape(), r.origins[name], write, nil); err != nil {
				return c, err
			}
		}
	}
	c.Sections = map[string]any{variablesSection: origins}
	if !s.saved.partial { // else the list is incomplete
		c.Sections[stepsSection] = slices.Concat([]usedStep{}, s.saved.steps)
	}
	return c, nil
}

func writeTensor(w io.Writer, t *tensors.Tensor) error {
	if t.Shape().Size() == 0 {
		return nil
	}
	var writeErr error
	err := t.ConstBytes(func(data []byte) { _, writeErr = w.Write(data) })
	return errors.Join(err, writeErr)
}

// Restore replaces the state's values by those of a checkpoint, of any strategy. Later variables take theirs when a
// step creates them. If the model differs, Restore or that step ([Stepper.Prepare] checks earlier) returns a
// [*MismatchError]. After an error the state is unchanged. A successful Restore repairs lost values.
//
// A step used before the checkpoint must have the same variables, except for metrics. A training step first used
// later gives missing variables initial values. Optimizer variables are new for parameters that it has not trained.
// Layers are new if the step has another function or its own optimizer ([WithStepOptimizer]), and the process has
// made the earlier training steps; otherwise prepare one of these first. Variables that the checkpoint lacks are
// removed.
func (s *State) Restore(ctx context.Context, c *checkpoint.Checkpoint) error {
	if err := s.restore(ctx, c, nil); err != nil {
		return fmt.Errorf("managed: restore: %w", err)
	}
	return nil
}

// Transfer copies tensors of any checkpoint into variables of another model. from returns a tensor's name for a
// variable's full name, or "" to keep or draw its value. A missing or unfitting tensor is a [*MismatchError], of
// later variables from the step that creates them. It is an error if no variable takes a tensor.
//
//	err := state.Transfer(ctx, c, func(name string) string {
//		if strings.HasPrefix(name, "/logits/") { return "" } // a new last layer
//		return strings.Replace(name, "/encoder/", "/backbone/", 1)
//	})
func (s *State) Transfer(ctx context.Context, c *checkpoint.Checkpoint, from func(variable string) (tensor string)) error {
	err := errors.New("the function of names is nil; to take all tensors under the same names, use Restore")
	if from != nil {
		err = s.restore(ctx, c, from)
	}
	if err != nil {
		return fmt.Errorf("managed: transfer: %w", err)
	}
	return nil
}

func (s *State) restore(ctx context.Context, c *checkpoint.Checkpoint, from func(string) string) error {
	done, err := s.values.ChangeAll(ctx)
	if err != nil {
		return err
	}
	defer done()
	r := &restored{step: c.Step, from: from, late: s.model.given.InitialLate()}
	if from == nil {
		if err := c.Section(variablesSection, &r.origins); err != nil {
			return fmt.Errorf("this is not a checkpoint of a managed.State (Transfer takes tensors of any checkpoint): %w", err)
		}
		err := c.Section(stepsSection, &r.steps)
		if r.recorded = err == nil; err != nil && !errors.Is(err, checkpoint.ErrNoSection) {
			return err
		}
	}
	given := map[string]*tensors.Tensor{}
	for _, t := range c.Tensors {
		if _, ours := r.origins[t.Name]; !ours && from == nil {
			continue
		}
		var loaded *tensors.Tensor
		dtype, err := outOfFile(t.DType)
		if err == nil {
			loaded, err = r.late.FromFile(t, dtype)
		}
		if err != nil && from == nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		if err == nil {
			given[t.Name] = loaded
		}
	}
	for name := range r.origins {
		if given[name] == nil {
			return fmt.Errorf("the checkpoint lists %s, but does not contain it", name)
		}
	}
	_ = s.values.Last.Follow(nil) // replaced in any case
	known := s.values.Variables()
	r.counts = countsOf(given, r.origins)
	r.all, r.tensors = len(given), given
	r, err = s.renewed(r, known)
	if err != nil {
		return err
	}
	given = r.tensors
	if len(known) > 0 {
		if err := r.asked(known); err != nil {
			return err
		}
		if err := s.checkKnown(r, known, given); err != nil {
			return err
		}
		s.values.NotePacks(s.model.store)
		if err := s.replace(ctx, r, given); err != nil {
			return err
		}
	}
	s.model.given.Tensors, s.model.given.Late = given, r.late
	if from != nil {
		s.model.given.Tensors = map[string]*tensors.Tensor{}
	}
	if from == nil && given[rateName] != nil {
		s.model.startRate = nil
	}
	s.saved.restored = r
	if from == nil {
		s.saved.partial = !r.recorded
		for _, step := range r.steps {
			s.saved.note(step)
		}
	}
	return nil
}

func (s *State) replace(ctx context.Context, r *restored, given map[string]*tensors.Tensor) error {
	lacks := map[*model.Variable]bool{}
	put, err := s.values.PutEach(ctx, func(at int) (*tensors.Tensor, error) {
		v := s.values.Variable(at)
		name := r.nameOf(v)
		to, resets := s.model.resets[v]
		switch {
		case given[name] != nil:
			return r.late.CopyOf(given[name])
		case resets && r.from == nil:
			return filled(to)
		case r.from == nil && name != store.RandomName:
			lacks[v] = true
		case s.values.Last.Lost() != nil:
			return nil, fmt.Errorf("its value is lost, and the checkpoint has no value for it: %w", s.values.Last.Lost())
		}
		return nil, nil
	})
	if err != nil {
		return err
	}
	for at, v := range s.values.Variables() {
		for _, name := range s.values.NamesOf(at) {
			if o, ok := r.origins[name]; ok {
				s.saved.origins[name] = o
			}
		}
		if r.from == nil {
			delete(given, v.Path())
		}
	}
	return s.putBack(put, lacks)
}
