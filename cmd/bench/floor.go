package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// part is a layer. Its numbers are bytes: activations that the gradient needs, those that it computes again, and
// gradients in memory when the backward pass is there.
type part struct{ kept, again, gradients int }

// footprint is a training step under Adam and the bytes that it needs at least.
type footprint struct {
	name       string
	batch      int
	fields     []data.Field
	report     managed.Build
	options    []managed.Option
	parameters int
	parts      []part // in the order of the forward pass
}

func footprints() (list []footprint) {
	list = append(list, mlpFootprint(128, 784, 512, 512, 10))
	for _, places := range []int{32, 128, 512} {
		list = append(list, lstmFootprint(32, places))
	}
	small, large := gptSize, gpt{layers: 12, width: 768, heads: 12, vocabulary: 50_257, places: 256}
	for _, m := range []gpt{small, small.recomputed(), large, large.recomputed()} {
		batch := 16
		if m.layers == large.layers {
			batch = 4
		}
		list = append(list, m.footprint(batch, 4), m.footprint(batch, 2))
	}
	return list
}

func mlpFootprint(batch int, sizes ...int) footprint {
	f := footprint{name: "mlp", batch: batch, fields: []data.Field{data.X(nil, batch, sizes[0]), data.Y([]int32(nil), batch)},
		report: workload{model: dense(sizes[1:]...)}.report("log")}
	for i, out := range sizes[1:] {
		of := part{kept: 4 * batch * out, gradients: 4 * (sizes[i] + 1) * out}
		if i > 0 { // the first input is the batch
			of.kept += 4 * batch * sizes[i]
		}
		f.parts, f.parameters = append(f.parts, of), f.parameters+of.gradients/4
	}
	return f
}

func lstmFootprint(batch, places int) footprint {
	gates := 4 * lstmUnits
	layer := part{kept: 4 * batch * places * (2*gates + 3*lstmUnits), gradients: 4 * (lstmIn + lstmUnits + 1) * gates}
	head := part{kept: 4 * batch * (lstmUnits + lstmClasses), gradients: 4 * (lstmUnits + 1) * lstmClasses}
	return footprint{name: fmt.Sprint("lstm ", places), batch: batch, fields: []data.Field{data.X(nil, batch, places, lstmIn), data.Y([]int32(nil), batch)},
		report: lstmOf(places, 1).report, parameters: (layer.gradients + head.gradients) / 4, parts: []part{layer, head}}
}

// footprint counts a block's activations as Korthikanti et al. (2022), without dropout. size is an activation's, in
// bytes. The gradient of the tied table waits for that of its vectors.
func (m gpt) footprint(batch, size int) footprint {
	f := footprint{name: fmt.Sprint("gpt ", m.layers), batch: batch, fields: []data.Field{data.X([]int32(nil), batch, m.places), data.Y([]int32(nil), batch, m.places)},
		report: gptOf(m, 1).report}
	rows, table, positions := batch*m.places, 4*m.vocabulary*m.width, 4*m.places*m.width
	wide := size * rows * m.width
	block := part{kept: 16*wide + size*rows*m.heads*m.places, gradients: 4 * (12*m.width + 13) * m.width}
	f.parameters = (m.layers*block.gradients + table + positions + 8*m.width) / 4
	block.gradients += table
	if m.again {
		f.name += " recomputed"
		block.kept, block.again = wide, block.kept-wide
	}
	f.parts = append(f.parts, part{gradients: table + positions})
	for range m.layers {
		f.parts = append(f.parts, block)
	}
	f.parts = append(f.parts, part{kept: 2*wide + size*rows*m.vocabulary, gradients: table + 8*m.width})
	if size == 2 {
		f.name, f.options = f.name+" bfloat16", []managed.Option{managed.WithPolicy(optim.MixedBFloat16())}
	}
	return f
}

// least is of one step: parameters, Adam's moments and the batch, and the largest place of the backward pass.
func (f footprint) least() int {
	before, most := 0, 0
	for _, p := range f.parts {
		before += p.kept
		most = max(most, before+p.again+p.gradients)
	}
	return 12*f.parameters + f.ofBatch() + most
}

func (f footprint) ofBatch() (bytes int) {
	for _, field := range f.fields {
		n := 4
		for _, d := range field.Array.Dims {
			n *= d
		}
		bytes += n
	}
	return bytes
}

// compiled is XLA's count.
func (f footprint) compiled(ctx context.Context, r *xla.Runtime) (bytes int, err error) {
	state, err := managed.New(strategies.Jit(r), append(f.options, managed.WithOptimizer(adam()))...)
	if err != nil {
		return 0, err
	}
	step := managed.TrainStep(f.report)
	defer func() { err = errors.Join(err, step.Close(), state.Close()) }()
	batch, err := managed.ZeroBatch(f.fields...)
	if err != nil {
		return 0, err
	}
	p, err := step.Program(ctx, state, batch)
	if err != nil {
		return 0, err
	}
	m, err := p.Memory()
	return int(m.Arguments+m.Outputs-m.Aliased+m.Temporary) - (max(p.Block(), 1)-1)*f.ofBatch(), err
}

func floors(ctx context.Context, b *bench) error {
	for _, f := range footprints() {
		if !b.wants(f.name) {
			continue
		}
		r, err := b.open(ctx)
		if err != nil {
			return err
		}
		bytes, err := f.compiled(ctx, r)
		if err != nil {
			return err
		}
		of := line{Workload: "memory", Variant: f.name, Unit: "MB", Batch: f.batch, Ratio: float64(bytes) / float64(f.least())}
		if err := b.emit(of, []float64{float64(bytes) / 1e6}); err != nil {
			return err
		}
	}
	return nil
}
