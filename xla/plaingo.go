package xla

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/internal/graphs"
)

// plainGo fixes RNGBitGenerator. Its values name the runtime, which GoMLX's tensors compare.
type plainGo struct {
	compute.Backend
	runtime *Runtime
}

func (b *plainGo) Builder(name string) compute.Builder {
	return plainGoBuilder{b.Backend.Builder(name), b}
}

func (b *plainGo) BufferFromFlatData(n compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	if b.runtime.uses.Read(context.Background()) != nil {
		return nil, errClosed
	}
	defer b.runtime.uses.DoneReading()
	made, err := b.Backend.BufferFromFlatData(n, flat, shape)
	if err != nil {
		return nil, err
	}
	return &plainGoBuffer{made, b}, nil
}

func (b *plainGo) NewSharedBuffer(n compute.DeviceNum, shape shapes.Shape) (compute.Buffer, any, error) {
	if b.runtime.uses.Read(context.Background()) != nil {
		return nil, nil, errClosed
	}
	defer b.runtime.uses.DoneReading()
	made, flat, err := b.Backend.NewSharedBuffer(n, shape)
	if err != nil {
		return nil, nil, err
	}
	return &plainGoBuffer{made, b}, flat, nil
}

type plainGoBuffer struct {
	compute.Buffer
	of *plainGo
}

func (b *plainGoBuffer) Backend() compute.Backend { return b.of.runtime }

func (b *plainGoBuffer) copyTo(to []byte) error {
	if b.of.runtime.uses.Read(context.Background()) != nil {
		return errClosed
	}
	defer b.of.runtime.uses.DoneReading()
	flat, err := b.Data()
	if err != nil {
		return err
	}
	from := dtypes.UnsafeByteSliceFromAny(flat)
	if len(to) != len(from) {
		return fmt.Errorf("xla: fetch %T: expected room for %d bytes, got %d", flat, len(from), len(to))
	}
	copy(to, from)
	return nil
}

type plainGoExecutable struct {
	compute.Executable
	of *plainGo
}

func (e plainGoExecutable) Execute(inputs []compute.Buffer, donate []bool, n compute.DeviceNum) ([]compute.Buffer, error) {
	if e.of.runtime.uses.Read(context.Background()) != nil {
		return nil, errClosed
	}
	defer e.of.runtime.uses.DoneReading()
	unwrapped := make([]compute.Buffer, len(inputs))
	for i, input := range inputs {
		unwrapped[i] = input
		if b, ok := input.(*plainGoBuffer); ok {
			unwrapped[i] = b.Buffer
		}
	}
	outputs, err := e.Executable.Execute(unwrapped, donate, n)
	for i, o := range outputs {
		outputs[i] = &plainGoBuffer{o, e.of}
	}
	return outputs, err
}

type plainGoBuilder struct {
	compute.Builder
	of *plainGo
}

func (b plainGoBuilder) Main() compute.Function { return plainGoFunction{b.Builder.Main()} }

func (b plainGoBuilder) NewFunction(name string) (compute.Function, error) {
	return mended(b.Builder.NewFunction(name))
}

func (b plainGoBuilder) Compile() (compute.Executable, error) {
	e, err := b.Builder.Compile()
	if err != nil {
		return nil, err
	}
	return plainGoExecutable{e, b.of}, nil
}

// The backend accepts only its own functions.
type plainGoFunction struct{ compute.Function }

func mended(f compute.Function, err error) (compute.Function, error) {
	if err != nil {
		return nil, err
	}
	return plainGoFunction{f}, nil
}

func unwrapped(f compute.Function) compute.Function {
	if wrapped, ok := f.(plainGoFunction); ok {
		return wrapped.Function
	}
	return f
}

func (f plainGoFunction) Closure() (compute.Function, error) { return mended(f.Function.Closure()) }

func (f plainGoFunction) Call(to compute.Function, inputs ...compute.Value) ([]compute.Value, error) {
	return f.Function.Call(unwrapped(to), inputs...)
}

func (f plainGoFunction) Sort(less compute.Function, axis int, stable bool, inputs ...compute.Value) ([]compute.Value, error) {
	return f.Function.Sort(unwrapped(less), axis, stable, inputs...)
}

func (f plainGoFunction) While(cond, body compute.Function, state ...compute.Value) ([]compute.Value, error) {
	return f.Function.While(unwrapped(cond), unwrapped(body), state...)
}

func (f plainGoFunction) If(pred compute.Value, yes, no compute.Function) ([]compute.Value, error) {
	return f.Function.If(pred, unwrapped(yes), unwrapped(no))
}

// RNGBitGenerator keeps unused words of the state, which GoMLX leaves uninitialized: equal runs would differ.
func (f plainGoFunction) RNGBitGenerator(state compute.Value, shape shapes.Shape) (newState, values compute.Value, err error) {
	const used = 2
	whole, err := f.Shape(state)
	if err != nil {
		return nil, nil, err
	}
	newState, values, err = f.Function.RNGBitGenerator(state, shape)
	if err != nil {
		return nil, nil, err
	}
	written, err := f.Slice(newState, []int{0}, []int{used}, []int{1})
	if err != nil {
		return nil, nil, err
	}
	kept, err := f.Slice(state, []int{used}, []int{whole.Dimensions[0]}, []int{1})
	if err != nil {
		return nil, nil, err
	}
	newState, err = f.Concatenate(0, written, kept)
	return newState, values, err
}

// plain replaces nothing in place. Its runs are sequential.
type plain struct {
	on    *Runtime
	exec  compute.Executable
	built Built
	mu    sync.Mutex
}

func (p *plain) run(inputs []compute.Buffer, host []any, _ runMode) (rest []compute.Buffer, _ *Running, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.Clone(inputs)
	_, shapes := p.exec.Inputs()
	if len(all) != len(shapes) {
		return nil, nil, fmt.Errorf("expected %d inputs, got %d", len(shapes), len(all))
	}
	for i, place := range p.built.Host {
		if all[place], err = p.on.BufferFromFlatData(0, host[i], shapes[place]); err != nil {
			return nil, nil, fmt.Errorf("input %d from the host: %w", i, err)
		}
		defer func() { err = errors.Join(err, all[place].Finalize()) }()
	}
	var outputs []compute.Buffer
	if caught := graphs.Catch(func() { outputs, err = p.exec.Execute(all, nil, 0) }); caught != nil {
		err = caught
	}
	if err != nil {
		return nil, nil, err
	}
	for i, b := range outputs {
		place, replaces := p.built.InPlace[i]
		if !replaces {
			rest = append(rest, b)
			continue
		}
		if freeErr := inputs[place].Finalize(); freeErr != nil {
			err = errors.Join(err, freeErr)
		}
		inputs[place] = b
	}
	return rest, nil, err
}

func (p *plain) explained(err error) error { return err }

func (p *plain) close() error { return graphs.Catch(p.exec.Finalize) }
