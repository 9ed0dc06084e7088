package main

import (
	"context"
	"image"
	"image/png"
	"math"
	"os"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed"
)

const (
	side   = 12 // images per row and column
	edge   = 8
	margin = 1
	zoom   = 5
)

func writeGrid(ctx context.Context, state *managed.State, path string) {
	batch := data.Batch{Fields: []data.Field{data.Named("z", pairs(), side*side, numbers)}, Size: side * side}
	_, logs := must.M2(managed.TestStep(paint).Step(ctx, state, batch))
	pictures := must.M1(managed.Array(logs, "pictures")) // waits for the device
	file := must.M1(os.Create(path))
	must.M(png.Encode(file, draw(pictures.Flat.([]float32))))
	must.M(file.Close())
}

// pairs are a grid of the normal distribution's quantiles.
func pairs() (z []float32) {
	place := func(i int) float32 {
		return float32(math.Sqrt2 * math.Erfinv(2*(float64(i)+0.5)/side-1))
	}
	for row := range side {
		for column := range side {
			z = append(z, place(column), place(row))
		}
	}
	return z
}

func draw(ink []float32) *image.Gray {
	const pitch = edge + margin
	grid := image.NewGray(image.Rect(0, 0, (side*pitch+margin)*zoom, (side*pitch+margin)*zoom))
	for i := range grid.Pix {
		x, y := i%grid.Stride/zoom-margin, i/grid.Stride/zoom-margin
		grid.Pix[i] = 160
		if x >= 0 && y >= 0 && x%pitch < edge && y%pitch < edge {
			picture := y/pitch*side + x/pitch
			grid.Pix[i] = uint8(255 * (1 - ink[picture*pixels+y%pitch*edge+x%pitch]))
		}
	}
	return grid
}
