package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/xla"
)

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
			return xla.Built{Outputs: []*graph.Node{graph.DotProduct(graph.Parameter(g, "x", square), graph.Parameter(g, "y", square))}}
		}
		n := float64(size.n)
		took, err := b.runs(ctx, r, product, square, 2, size.inner)
		if err != nil {
			return err
		}
		rates := took.each(func(s float64) float64 { return 2 * n * n * n * float64(size.inner) / s / 1e9 })
		if err := b.emit(line{Workload: "matmul", Variant: variant, Unit: "GFLOP/s", CPU: took.cpu}, rates); err != nil {
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
		const inner = 3
		took, err := b.runs(ctx, r, plusOne, flat, 1, inner)
		if err != nil {
			return err
		}
		rates := took.each(func(s float64) float64 { return inner * 2 * (256 << 20) / s / 1e9 })
		if err := b.emit(line{Workload: "copy", Variant: variant.name, Unit: "GB/s (read+write)", CPU: took.cpu}, rates); err != nil {
			return err
		}
	}
	return nil
}

func inPlace(ctx context.Context, b *bench) error {
	r, err := b.open(ctx)
	if err != nil {
		return err
	}
	small := shapes.Make(dtypes.Float32, 4)
	for _, count := range []int{10, 150, 600} {
		variant := fmt.Sprint(count)
		if !b.wants(variant) {
			continue
		}
		plusOne := func(g *graph.Graph) xla.Built {
			built := xla.Built{InPlace: map[int]int{}}
			for i := range count {
				built.InPlace[i] = i
				built.Outputs = append(built.Outputs, graph.AddScalar(graph.Parameter(g, fmt.Sprintf("v%d", i), small), 1))
			}
			return built
		}
		inner := 240_000 / count
		if b.steps > 0 {
			inner = b.steps
		}
		took, err := b.runs(ctx, r, plusOne, small, count, inner)
		if err != nil {
			return err
		}
		each := took.each(func(s float64) float64 { return 1e6 * s / float64(inner) })
		if err := b.emit(line{Workload: "inplace", Variant: variant, Unit: "us/run", Steps: inner, CPU: took.cpu}, each); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) runs(ctx context.Context, r *xla.Runtime, build func(*graph.Graph) xla.Built, shape shapes.Shape, inputs, inner int) (took repeats, err error) {
	p, err := r.Compile("runs", build)
	if err != nil {
		return took, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	values := make([]float32, shape.Size())
	for i := range values {
		values[i] = float32(i%97) / 97
	}
	args := make([]compute.Buffer, inputs)
	for i := range args {
		if args[i], err = r.BufferFromFlatData(0, values, shape); err != nil {
			return took, err
		}
		defer func() { err = errors.Join(err, args[i].Finalize()) }()
	}
	once := func() error {
		outputs, err := p.Run(args, nil)
		for _, o := range outputs {
			err = errors.Join(err, o.Finalize())
		}
		return err
	}
	for range 2 { // the first copies, later ones overwrite
		if err := once(); err != nil {
			return took, err
		}
	}
	return b.measure(ctx, b.repeats, func() error {
		for range inner {
			if err := once(); err != nil {
				return err
			}
		}
		return nil
	})
}
