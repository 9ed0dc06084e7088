package images

import (
	"fmt"
	"math"

	"github.com/lazo-ml/lazo/data"
)

type picture struct {
	h, w, channels int
	v, spare       []float64
}

func (d *draws) between(low, high float64) float64 {
	return low + (high-low)*float64(d.Uint64()>>11)/(1<<53)
}

// RandomRotation rotates an image about its centre by a uniform angle of up to degrees either way, bilinearly. Edge
// pixels fill the rest.
func RandomRotation(degrees float64) Augmentation {
	return altering("random rotation", setting("an angle", degrees, 180), func(d *draws, p *picture) {
		sin, cos := math.Sincos(d.between(-degrees, degrees) * math.Pi / 180)
		p.warp(cos, sin, -sin, cos)
	})
}

// RandomZoom scales an image about its centre by a uniform factor from 1-share to 1+share, bilinearly. Edge pixels fill
// the rest.
func RandomZoom(share float64) Augmentation {
	return altering("random zoom", setting("a share", share, 0.99), func(d *draws, p *picture) {
		times := d.between(1-share, 1+share)
		p.warp(1/times, 0, 0, 1/times)
	})
}

// RandomBrightness adds a uniform number from -by to by to an image, without clipping.
func RandomBrightness(by float64) Augmentation {
	return altering("random brightness", setting("a number to add", by, math.MaxFloat32), func(d *draws, p *picture) {
		plus := d.between(-by, by)
		for i := range p.v {
			p.v[i] += plus
		}
	})
}

// RandomContrast multiplies each pixel's deviation from its channel's mean by a uniform factor from 1-share to 1+share,
// without clipping.
func RandomContrast(share float64) Augmentation {
	return altering("random contrast", setting("a share", share, 1), func(d *draws, p *picture) {
		times := d.between(1-share, 1+share)
		for c := range p.channels {
			sum := 0.0
			for i := c; i < len(p.v); i += p.channels {
				sum += p.v[i]
			}
			mean := sum / float64(p.h*p.w)
			for i := c; i < len(p.v); i += p.channels {
				p.v[i] = mean + (p.v[i]-mean)*times
			}
		}
	})
}

// Cutout sets a square of size x size pixels around a random pixel, clipped to the image, to 0 (DeVries and Taylor
// 2017).
func Cutout(size int) Augmentation {
	return altering("cutout", func(h, w int) error {
		if size < 1 || size > max(h, w) {
			return fmt.Errorf("a square of %d pixels in an image of %d x %d: expected 1 to %d", size, h, w, max(h, w))
		}
		return nil
	}, func(d *draws, p *picture) {
		top, left := d.upTo(p.h)-size/2, d.upTo(p.w)-size/2
		for r := max(top, 0); r < min(top+size, p.h); r++ {
			clear(p.v[(r*p.w+max(left, 0))*p.channels : (r*p.w+min(left+size, p.w))*p.channels])
		}
	})
}

func altering(name string, check func(h, w int) error, alter func(d *draws, p *picture)) Augmentation {
	return Augmentation{name: name, check: check, alter: alter}
}

func setting(what string, value, most float64) func(h, w int) error {
	return func(int, int) error {
		if !(value >= 0 && value <= most) {
			return fmt.Errorf("%s of %v: expected 0 to %v", what, value, most)
		}
		return nil
	}
}

// warp maps offset (r, c) from the centre to offset (rr*r + rc*c, cr*r + cc*c) of the source.
func (p *picture) warp(rr, rc, cr, cc float64) {
	if len(p.spare) != len(p.v) {
		p.spare = make([]float64, len(p.v))
	}
	middleR, middleC := float64(p.h-1)/2, float64(p.w-1)/2
	to := p.spare
	for r := range p.h {
		for c := range p.w {
			dr, dc := float64(r)-middleR, float64(c)-middleC
			p.between(to[:p.channels], middleR+rr*dr+rc*dc, middleC+cr*dr+cc*dc)
			to = to[p.channels:]
		}
	}
	p.v, p.spare = p.spare, p.v
}

func (p *picture) between(to []float64, row, column float64) {
	row, column = min(max(row, 0), float64(p.h-1)), min(max(column, 0), float64(p.w-1))
	r, c := int(row), int(column)
	down, right := row-float64(r), column-float64(c)
	below, beside := min(r+1, p.h-1), min(c+1, p.w-1)
	for k := range to {
		at := func(r, c int) float64 { return p.v[(r*p.w+c)*p.channels+k] }
		above := at(r, c)*(1-right) + at(r, beside)*right
		to[k] = above*(1-down) + (at(below, c)*(1-right)+at(below, beside)*right)*down
	}
}

func alterable(a data.Array) error {
	switch a.Flat.(type) {
	case []float32, []float64:
		return nil
	}
	return fmt.Errorf("the images are %s, expected float32 or float64, as of 0 to 1", a.DType())
}

func altered(a data.Array, changes []Augmentation, d []*draws) data.Array {
	switch flat := a.Flat.(type) {
	case []float32:
		a.Flat = alteredOf(flat, a.Dims, changes, d)
	case []float64:
		a.Flat = alteredOf(flat, a.Dims, changes, d)
	}
	return a
}

func alteredOf[T float32 | float64](flat []T, dims []int, changes []Augmentation, d []*draws) []T {
	width := dims[1] * dims[2] * dims[3]
	to := make([]T, len(flat))
	p := picture{h: dims[1], w: dims[2], channels: dims[3], v: make([]float64, width)}
	for i := range dims[0] {
		for k, v := range flat[i*width : (i+1)*width] {
			p.v[k] = float64(v)
		}
		for _, c := range changes {
			c.alter(d[i], &p)
		}
		for k, v := range p.v {
			to[i*width+k] = T(v)
		}
	}
	return to
}
