package managed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/blocks"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// Prepare creates the step's variables and compiles it as loops run it ([Stepper.StepBlock]), without a run. Only the
// batch's names, shapes and dtypes matter ([ZeroBatch]).
func (s *Stepper) Prepare(ctx context.Context, state *State, batch data.Batch) error {
	if err := s.prepare(ctx, state, batch); err != nil {
		return &graphs.Failure{Package: "managed", What: "prepare the " + s.String(), Err: err}
	}
	return nil
}

func (s *Stepper) prepare(ctx context.Context, state *State, batch data.Batch) error {
	if err := cmp.Or(context.Cause(ctx), s.takes(state)); err != nil {
		return err
	}
	done, err := state.values.Read(ctx)
	if err != nil {
		return err
	}
	done()
	return s.prepareFor(ctx, state, batch, blocks.Steps)
}

// Program prepares the step and returns its program, for Cost, Memory and Optimized; do not run or close it. On a
// runtime of xla.OpenTopology it is compiled on demand. Errors include [xla.ErrUnimplemented], as for [Stepper.Costs].
func (s *Stepper) Program(ctx context.Context, state *State, batch data.Batch) (*xla.Program, error) {
	err := s.prepare(ctx, state, batch)
	var p *xla.Program
	if err == nil {
		p, err = s.program(state, batch)
	}
	if err != nil {
		return nil, &graphs.Failure{Package: "managed", What: "program of the " + s.String(), Err: err}
	}
	return p, nil
}

func (s *Stepper) program(state *State, batch data.Batch) (*xla.Program, error) {
	done, err := state.values.Read(context.Background())
	if err != nil {
		return nil, err
	}
	defer done()
	if batch, err = state.values.Strategy().Batch(batch); err != nil {
		return nil, err
	}
	c := s.cache.lookup(state, batch, blocks.Steps)
	if c == nil {
		return nil, errors.New("the step was closed, or the state moved, during the compilation")
	}
	if p := c.program.Compiled(); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%w: %v does not compile whole steps", xla.ErrUnimplemented, state.values.Strategy())
}

// Build creates the step's variables without compiling. inputs are those of strategies.Inputs.
func (s *Stepper) Build(ctx context.Context, state *State, inputs []strategies.Input) error {
	err := cmp.Or(context.Cause(ctx), s.takes(state))
	if err == nil {
		err = s.lower(ctx, &compiled{step: s, state: state, block: 1, inputs: slices.Clone(inputs)}, new(exporting))
	}
	if err != nil {
		return &graphs.Failure{Package: "managed", What: "build the " + s.String(), Err: err}
	}
	return nil
}

// ZeroBatch returns a batch of zeros with the names, shapes and dtypes of fields. A typed nil slice gives the dtype; an
// untyped nil means float32:
//
//	managed.ZeroBatch(data.X(nil, 32, 28, 28), data.Y([]int32(nil), 32))
func ZeroBatch(fields ...data.Field) (data.Batch, error) {
	b := data.Batch{Fields: make([]data.Field, len(fields))}
	for i, f := range fields {
		zeros, err := zeros(f.Array)
		if err != nil {
			return data.Batch{}, fmt.Errorf("managed: zero batch: field %q: %w", f.Name, err)
		}
		b.Fields[i] = data.Field{Name: f.Name, Array: zeros}
		if i == 0 && len(f.Array.Dims) > 0 {
			b.Size = f.Array.Dims[0]
		}
	}
	return b, nil
}

func zeros(a data.Array) (data.Array, error) {
	n := 1
	for _, d := range a.Dims {
		if d < 0 || d > 0 && n > math.MaxInt32/d {
			return data.Array{}, fmt.Errorf("dims %v: expected at most %d numbers, and no negative length", a.Dims, math.MaxInt32)
		}
		n *= d
	}
	if a.Flat == nil {
		a.Flat = []float32(nil)
	}
	of := reflect.TypeOf(a.Flat)
	if of.Kind() != reflect.Slice {
		return data.Array{}, fmt.Errorf("%T does not name a dtype, expected a slice such as []float32(nil)", a.Flat)
	}
	a.Flat = reflect.MakeSlice(of, n, n).Interface()
	return a, a.Check()
}
