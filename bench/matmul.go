package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/lazo-ml/lazo/xla"
)

// matmul measures the machine's limits: a float32 matrix product, and x+1 over 256 MiB.
func matmul(ctx context.Context, b *bench) error {
	r, err := b.open(ctx)
	if err != nil {
		return err
	}
	for _, size := range []struct{ n, inner int }{{1024, 20}, {4096, 1}} {
		variant := fmt.Sprintf("%d^3", size.n)
		if !b.wants(variant) {
			continue
		}
		square := shapes.Make(dtypes.Float32, size.n, size.n)
		product := func(g *graph.Graph) xla.Built {
			return xla.Built{Outputs: []*graph.Node{graph.Dot(graph.Parameter(g, "x", square), graph.Parameter(g, "y", square))}}
		}
		n := float64(size.n)
		rates, err := rate(ctx, r, product, square, 2, 2*n*n*n, size.inner, max(b.repeats, 7))
		if err != nil {
			return err
		}
		if err := b.emit(line{Workload: "matmul", Variant: variant, Unit: "GFLOP/s"}, rates); err != nil {
			return err
		}
	}
	flat := shapes.Make(dtypes.Float32, 64<<20)
	for _, variant := range []struct {
		name    string
		inPlace map[int]int
	}{{"256MiB x+1 (fresh output)", nil}, {"256MiB x+1 (donated)", map[int]int{0: 0}}} {
		if !b.wants(variant.name) {
			continue
		}
		plusOne := func(g *graph.Graph) xla.Built {
			return xla.Built{Outputs: []*graph.Node{graph.AddScalar(graph.Parameter(g, "x", flat), 1)}, InPlace: variant.inPlace}
		}
		rates, err := rate(ctx, r, plusOne, flat, 1, 2*256<<20, 3, max(b.repeats, 7))
		if err != nil {
			return err
		}
		if err := b.emit(line{Workload: "copy", Variant: variant.name, Unit: "GB/s (read+write)"}, rates); err != nil {
			return err
		}
	}
	return nil
}

// rate runs a program on inputs of one shape that stay on the device, and gives work per nanosecond.
func rate(ctx context.Context, r *xla.Runtime, build func(*graph.Graph) xla.Built, shape shapes.Shape, inputs int, work float64, inner, repeats int) (rates []float64, err error) {
	p, err := r.Compile("rate", build)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	values := make([]float32, shape.Size())
	for i := range values {
		values[i] = float32(i%97) / 97
	}
	args := make([]backends.Buffer, inputs)
	for i := range args {
		if args[i], err = r.BufferFromFlatData(0, values, shape); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, r.BufferFinalize(args[i])) }()
	}
	once := func() error {
		outputs, err := p.Run(args, nil)
		for _, o := range outputs {
			err = errors.Join(err, r.BufferFinalize(o))
		}
		return err
	}
	if err := once(); err != nil {
		return nil, err
	}
	for range repeats {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		start := time.Now()
		for range inner {
			if err := once(); err != nil {
				return nil, err
			}
		}
		rates = append(rates, work*float64(inner)/float64(time.Since(start).Nanoseconds()))
	}
	return rates, nil
}
