package images

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/arrays"
)

// MixUp returns a function as [Augment]. It replaces each example and its label by a weighted mean with another of its
// batch (Zhang et al. 2018). The weight is drawn from Beta(alpha, alpha), 0 < alpha <= 8.
//
// Field "x" is floating point. Field "y" holds integers [n] from 0 to classes-1, or probabilities [n, classes], and
// becomes float32 probabilities for categorical_crossentropy. Weights depend on the example's position. Padding rows
// are unchanged.
func MixUp(seed uint64, alpha float64, classes int) func(data.Batch) (data.Batch, error) {
	return mixing("mix up", seed, alpha, classes, func(x data.Array, others []int, shares []float64, _ []*draws) (data.Array, error) {
		if err := alterable(x); err != nil {
			return data.Array{}, err
		}
		return means(x, others, shares), nil
	})
}

// CutMix is [MixUp] with a rectangle of the other image (Yun et al. 2019). Images are [n, height, width, channels] of
// any type. The rectangle's sides are the image's times the square root of the other's weight, and its visible area
// determines the weights.
func CutMix(seed uint64, alpha float64, classes int) func(data.Batch) (data.Batch, error) {
	return mixing("cut mix", seed, alpha, classes, func(x data.Array, others []int, shares []float64, d []*draws) (data.Array, error) {
		if len(x.Dims) != 4 {
			return data.Array{}, fmt.Errorf("dims %v, expected images [n, height, width, channels]", x.Dims)
		}
		h, w, channels := x.Dims[1], x.Dims[2], x.Dims[3]
		from := upTo(x.Dims[0] * h * w)
		for i, other := range others {
			side := math.Sqrt(1 - shares[i])
			high, wide := int(math.Round(side*float64(h))), int(math.Round(side*float64(w)))
			top, left := d[i].upTo(h)-high/2, d[i].upTo(w)-wide/2
			bottom, right := min(top+high, h), min(left+wide, w)
			top, left = max(top, 0), max(left, 0)
			for r := top; r < bottom; r++ {
				for c := left; c < right; c++ {
					from[(i*h+r)*w+c] = (other*h+r)*w + c
				}
			}
			shares[i] = 1 - float64((bottom-top)*(right-left))/float64(h*w)
		}
		pixels := data.Array{Flat: x.Flat, Dims: []int{x.Dims[0] * h * w, channels}}.Gather(from)
		return data.Array{Flat: pixels.Flat, Dims: x.Dims}, nil
	})
}

func mixing(name string, seed uint64, alpha float64, classes int, f func(x data.Array, others []int, shares []float64, d []*draws) (data.Array, error)) func(data.Batch) (data.Batch, error) {
	return func(b data.Batch) (data.Batch, error) {
		mixed, err := mixed(b, seed, alpha, classes, f)
		if err != nil {
			return data.Batch{}, fmt.Errorf("images: %s: %w", name, err)
		}
		return mixed, nil
	}
}

func mixed(b data.Batch, seed uint64, alpha float64, classes int, f func(x data.Array, others []int, shares []float64, d []*draws) (data.Array, error)) (data.Batch, error) {
	if !(alpha > 0 && alpha <= 8) {
		return data.Batch{}, fmt.Errorf("alpha is %v, expected above 0 and at most 8", alpha)
	}
	rows, real, err := examples(b)
	if err != nil {
		return data.Batch{}, err
	}
	if err := errors.Join(has(b, "x"), has(b, "y")); err != nil {
		return data.Batch{}, err
	}
	order := make([]int, len(real))
	arrays.Permute(order, mix(seed, uint64(b.Epoch)), mix(^seed, uint64(b.At)))
	others, shares, d := upTo(rows), make([]float64, rows), make([]*draws, rows)
	for i := range rows {
		d[i], shares[i] = drawsAt(seed, b, i), 1
	}
	for i, row := range real {
		others[row], shares[row] = real[order[i]], d[row].beta(alpha)
	}
	b, err = data.OnField("x", func(x data.Array) (data.Array, error) { return f(x, others, shares, d) })(b)
	if err != nil {
		return data.Batch{}, fmt.Errorf("field \"x\": %w", err)
	}
	b, err = data.OnField("y", func(y data.Array) (data.Array, error) {
		labels, err := probabilities(y, classes)
		return means(labels, others, shares), err
	})(b)
	if err != nil {
		return data.Batch{}, fmt.Errorf("field \"y\": %w", err)
	}
	return b, nil
}

func examples(b data.Batch) (rows int, real []int, err error) {
	rows, err = b.Rows()
	if err == nil {
		_, err = b.Slice(0, rows) // refuses invalid arrays and masks
	}
	if err != nil {
		return 0, nil, err
	}
	marked := func(i int) bool { return b.Size == 0 || i < b.Size }
	if k := slices.IndexFunc(b.Fields, func(f data.Field) bool { return f.Name == data.Mask }); k >= 0 {
		mask := b.Fields[k].Array.Flat.([]bool)
		marked = func(i int) bool { return mask[i] }
	}
	for i := range rows {
		if marked(i) {
			real = append(real, i)
		}
	}
	return rows, real, nil
}

func probabilities(y data.Array, classes int) (data.Array, error) {
	switch flat := y.Flat.(type) {
	case []float32:
		if len(y.Dims) == 2 && y.Dims[1] == classes {
			return y, nil
		}
	case []float64:
		if len(y.Dims) == 2 && y.Dims[1] == classes {
			narrow := make([]float32, len(flat))
			for i, v := range flat {
				narrow[i] = float32(v)
			}
			return data.Array{Flat: narrow, Dims: y.Dims}, nil
		}
	default:
		if len(y.Dims) == 1 {
			return data.OneHot(y, classes)
		}
	}
	return data.Array{}, fmt.Errorf("labels %s %v, expected integers [n] from 0 to %d, or probabilities [n, %d] in floating point", y.DType(), y.Dims, classes-1, classes)
}

func means(a data.Array, others []int, shares []float64) data.Array {
	switch flat := a.Flat.(type) {
	case []float32:
		a.Flat = meansOf(flat, others, shares)
	case []float64:
		a.Flat = meansOf(flat, others, shares)
	}
	return a
}

func meansOf[T float32 | float64](flat []T, others []int, shares []float64) []T {
	to := slices.Clone(flat)
	width := len(flat) / max(len(others), 1)
	for i, other := range others {
		if other == i {
			continue
		}
		own, its := flat[i*width:(i+1)*width], flat[other*width:(other+1)*width]
		for k := range own {
			to[i*width+k] = T(shares[i]*float64(own[k]) + (1-shares[i])*float64(its[k]))
		}
	}
	return to
}

// beta draws from Beta(alpha, alpha) as Jöhnk (1964).
func (d *draws) beta(alpha float64) float64 {
	for {
		x, y := math.Pow(d.between(0, 1), 1/alpha), math.Pow(d.between(0, 1), 1/alpha)
		if sum := x + y; sum > 0 && sum <= 1 {
			return x / sum
		}
	}
}
