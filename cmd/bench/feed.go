package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/images"
	"github.com/lazo-ml/lazo/data/tables"
)

// as in the peers' scripts
const (
	feedImages, feedClasses, feedSide = 2_000, 10, 128
	feedResized, feedCropped          = 112, 96
	feedRows, feedColumns             = 200_000, 20
)

// from -data or a temporary folder
func feeding(name string, variants []string, write func(dir, variant string) error, read func(b *bench, dir, variant string) (int, error)) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) (err error) {
		dir := b.data
		if dir == "" {
			if dir, err = os.MkdirTemp("", "lazo-bench-"); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		}
		for _, variant := range variants {
			if !b.wants(variant) {
				continue
			}
			if err := written(dir, name+"-"+variant, func(part string) error { return write(part, variant) }); err != nil {
				return err
			}
			from, n := filepath.Join(dir, name+"-"+variant), 0
			once := func() (err error) {
				n, err = read(b, from, variant)
				return err
			}
			if err := once(); err != nil { // fills the file cache, as the peers' scripts
				return err
			}
			took, err := b.measure(ctx, b.repeats, once)
			if err != nil {
				return err
			}
			l := line{Workload: name, Variant: variant, Unit: "examples/s", Batch: b.batch, RSSMB: rssMB(), CPU: took.cpu}
			if err := b.emit(l, took.each(func(s float64) float64 { return float64(n) / s })); err != nil {
				return err
			}
		}
		return nil
	}
}

func written(dir, name string, write func(dir string) error) error {
	done := filepath.Join(dir, name)
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	part := done + ".part"
	err := errors.Join(os.RemoveAll(part), os.MkdirAll(part, 0o700))
	if err == nil {
		err = write(part)
	}
	if err == nil {
		err = os.Rename(part, done)
	}
	return err
}

var imageFiles = feeding("images", []string{"jpeg", "png"}, writeImages, func(b *bench, dir, _ string) (n int, err error) {
	pictures, err := images.Open(dir, images.Format{Height: feedResized, Width: feedResized, Resize: images.Stretch})
	if err != nil {
		return 0, err
	}
	set, err := pictures.MapBatches(images.Augment(1, "x", images.RandomCrop(feedCropped, feedCropped, 0), images.FlipHorizontal()))
	if err != nil {
		return 0, err
	}
	for batch, err := range set.Batches(cmp.Or(b.batch, 64), data.Shuffle(1)).All() {
		if err != nil {
			return 0, err
		}
		n += batch.Size
	}
	return n, nil
})

// Waves with noise compress like photographs.
func writeImages(dir, kind string) error {
	r := rand.New(rand.NewPCG(0, 0))
	for i := range feedImages {
		picture := image.NewRGBA(image.Rect(0, 0, feedSide, feedSide))
		var waves [3][4][4]float64
		for c := range waves {
			for k := range waves[c] {
				waves[c][k] = [4]float64{r.Float64() * 0.2, r.Float64() * 0.2, r.Float64() * 7, 40 * r.Float64()}
			}
		}
		for y := range feedSide {
			for x := range feedSide {
				noise := 4 * r.NormFloat64()
				var v [3]uint8
				for c := range v {
					sum := 128 + noise
					for _, w := range waves[c] {
						sum += w[3] * math.Sin(w[0]*float64(x)+w[1]*float64(y)+w[2])
					}
					v[c] = uint8(min(max(sum, 0), 255))
				}
				picture.SetRGBA(x, y, color.RGBA{v[0], v[1], v[2], 255})
			}
		}
		var file bytes.Buffer
		err := error(nil)
		if kind == "jpeg" {
			err = jpeg.Encode(&file, picture, &jpeg.Options{Quality: 90})
		} else {
			err = png.Encode(&file, picture)
		}
		class := filepath.Join(dir, strconv.Itoa(i%feedClasses))
		if err == nil {
			err = os.MkdirAll(class, 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(class, fmt.Sprintf("%04d.%s", i, kind)), file.Bytes(), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var tableFile = feeding("csv", []string{"numbers", "classes"}, writeTable, func(_ *bench, dir, variant string) (int, error) {
	format := tables.Format{}
	if variant == "classes" {
		format.Fields = []tables.Field{{Name: "x"}, {Name: "y", Columns: []string{"c19"}, Classes: feedKinds}}
	}
	set, err := tables.Open(filepath.Join(dir, "table.csv"), format)
	if err != nil {
		return 0, err
	}
	return set.Len(), nil
})

var feedKinds = []string{"setosa", "versicolor", "virginica"}

func writeTable(dir, variant string) (err error) {
	file, err := os.Create(filepath.Join(dir, "table.csv"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w, r := bufio.NewWriter(file), rand.New(rand.NewPCG(0, 0))
	var row []byte
	for c := range feedColumns {
		row = fmt.Appendf(row, ",c%d", c)
	}
	for range feedRows + 1 {
		if _, err := w.Write(append(row[1:], '\n')); err != nil {
			return err
		}
		row = row[:0]
		for c := range feedColumns {
			row = append(row, ',')
			if c == feedColumns-1 && variant == "classes" {
				row = append(row, feedKinds[r.IntN(len(feedKinds))]...)
				continue
			}
			row = strconv.AppendFloat(row, r.NormFloat64(), 'f', 6, 64)
		}
	}
	return w.Flush()
}
