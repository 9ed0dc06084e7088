package images

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/arrays"
)

// Augmentation is a random change of an image.
type Augmentation struct {
	name  string
	check func(h, w int) error
	dims  func(h, w int) (int, int)
	place func(d *draws, h, w int) placement
	// alter changes numbers, place moves pixels; one is set.
	alter func(d *draws, p *picture)
}

// placement maps the result's rows and columns to the image's. Outside is 0, or with edge the nearest pixel.
type placement struct {
	top, left             int
	flipRows, flipColumns bool
	edge                  bool
}

type draws struct{ *rand.PCG }

func (d *draws) upTo(n int) int {
	i, _ := bits.Mul64(d.Uint64(), uint64(n))
	return int(i)
}

// FlipHorizontal mirrors an image left to right, with probability 1/2.
func FlipHorizontal() Augmentation {
	return Augmentation{name: "flip horizontal", place: func(d *draws, _, _ int) placement { return placement{flipColumns: d.upTo(2) == 1} }}
}

// FlipVertical mirrors an image top to bottom, with probability 1/2.
func FlipVertical() Augmentation {
	return Augmentation{name: "flip vertical", place: func(d *draws, _, _ int) placement { return placement{flipRows: d.upTo(2) == 1} }}
}

// RandomCrop pads an image with pad zeros on each side and crops height x width pixels at a uniform position.
func RandomCrop(height, width, pad int) Augmentation {
	return Augmentation{
		name: "random crop",
		check: func(h, w int) error {
			if height < 1 || width < 1 || pad < 0 || pad > maxPad || height > h+2*pad || width > w+2*pad {
				return fmt.Errorf("%d x %d pixels out of an image of %d x %d with a border of %d: expected at least 1 pixel, at most the image with its border, and a border of at most %d",
					height, width, h, w, pad, maxPad)
			}
			return nil
		},
		dims: func(int, int) (int, int) { return height, width },
		place: func(d *draws, h, w int) placement {
			return placement{top: d.upTo(h+2*pad-height+1) - pad, left: d.upTo(w+2*pad-width+1) - pad}
		},
	}
}

const maxPad = 1 << 15

// RandomShift moves an image by up to rows and columns, uniformly. Edge pixels fill the rest.
func RandomShift(rows, columns int) Augmentation {
	return Augmentation{
		name: "random shift",
		check: func(h, w int) error {
			if rows < 0 || columns < 0 || rows > h || columns > w {
				return fmt.Errorf("shifts of up to %d rows and %d columns in an image of %d x %d: expected 0 up to the size of the image", rows, columns, h, w)
			}
			return nil
		},
		place: func(d *draws, _, _ int) placement {
			return placement{top: d.upTo(2*rows+1) - rows, left: d.upTo(2*columns+1) - columns, edge: true}
		},
	}
}

// Augment returns a function for data.Map, [data.Set.MapBatches] and the Augment of flaxlike.Fit. It applies the
// changes in order to copies of the images in the field, [n, height, width, channels]. Changes of numbers, as
// [RandomRotation], need floats.
//
// The draws depend only on the seed, the epoch, the position in it ([data.Batch].At) and the changes. Set Epoch and
// At if the batches have none.
func Augment(seed uint64, field string, changes ...Augmentation) func(data.Batch) (data.Batch, error) {
	changes = slices.Clone(changes)
	return func(b data.Batch) (data.Batch, error) {
		if err := has(b, field); err != nil {
			return data.Batch{}, fmt.Errorf("images: augment: %w", err)
		}
		begin := time.Now()
		augmented, err := data.OnField(field, func(a data.Array) (data.Array, error) {
			return augment(a, changes, func(row int) *draws { return drawsAt(seed, b, row) })
		})(b)
		if err != nil {
			return data.Batch{}, fmt.Errorf("images: augment: field %q: %w", field, err)
		}
		b.Note("augment", time.Since(begin))
		return augmented, nil
	}
}

// has also refuses a set on the device.
func has(b data.Batch, field string) error {
	names := make([]string, len(b.Fields))
	for k, f := range b.Fields {
		if names[k] = f.Name; f.Name == field {
			return nil
		}
	}
	return fmt.Errorf("the batch has no field %q; there are %q", field, names)
}

func drawsAt(seed uint64, b data.Batch, row int) *draws {
	return &draws{rand.NewPCG(mix(seed, uint64(b.Epoch)), mix(^seed, uint64(b.At+row)))}
}

// mix is SplitMix64's finalizer (Steele, Lea and Flood).
func mix(seed, n uint64) uint64 {
	z := seed + (n+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func augment(a data.Array, changes []Augmentation, random func(row int) *draws) (data.Array, error) {
	if err := arrays.Check(a.Flat, a.Dims); err != nil {
		return data.Array{}, err
	}
	if len(a.Dims) != 4 {
		return data.Array{}, fmt.Errorf("dims %v, expected images [n, height, width, channels]", a.Dims)
	}
	dims := slices.Clone(a.Dims)
	for _, c := range changes {
		if c.place == nil && c.alter == nil {
			return data.Array{}, fmt.Errorf("the Augmentation is the zero value: make it with a function of package images")
		}
		if c.check != nil {
			if err := c.check(dims[1], dims[2]); err != nil {
				return data.Array{}, fmt.Errorf("%s: %w", c.name, err)
			}
		}
		if c.alter != nil {
			if err := alterable(a); err != nil {
				return data.Array{}, fmt.Errorf("%s: %w", c.name, err)
			}
		}
		if c.dims != nil {
			dims[1], dims[2] = c.dims(dims[1], dims[2])
		}
	}
	if _, ok := arrays.Size(dims...); !ok {
		return data.Array{}, fmt.Errorf("dims %v: expected at most %d elements", dims, arrays.MostElements)
	}
	d := make([]*draws, dims[0])
	for i := range d {
		d[i] = random(i)
	}
	moves := func(c Augmentation) bool { return c.place != nil }
	for len(changes) > 0 {
		n := slices.IndexFunc(changes, func(c Augmentation) bool { return moves(c) != moves(changes[0]) })
		if n < 0 {
			n = len(changes)
		}
		if moves(changes[0]) {
			a = moved(a, changes[:n], d)
		} else {
			a = altered(a, changes[:n], d)
		}
		changes = changes[n:]
	}
	return a, nil
}

func moved(a data.Array, changes []Augmentation, d []*draws) data.Array {
	dims := slices.Clone(a.Dims)
	for _, c := range changes {
		if c.dims != nil {
			dims[1], dims[2] = c.dims(dims[1], dims[2])
		}
	}
	flat := move(a.Flat, a.Dims, dims, func(image int) (rows, columns []int) {
		return compose(a.Dims[1], a.Dims[2], changes, d[image])
	})
	return data.Array{Flat: flat, Dims: dims}
}

func compose(h, w int, changes []Augmentation, d *draws) (rows, columns []int) {
	rows, columns = upTo(h), upTo(w)
	for _, c := range changes {
		p := c.place(d, len(rows), len(columns))
		outH, outW := len(rows), len(columns)
		if c.dims != nil {
			outH, outW = c.dims(outH, outW)
		}
		rows = pick(rows, outH, p.top, p.flipRows, p.edge)
		columns = pick(columns, outW, p.left, p.flipColumns, p.edge)
	}
	return rows, columns
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func pick(from []int, n, start int, flip, edge bool) []int {
	out := make([]int, n)
	for i := range out {
		at := start + i
		if flip {
			at = len(from) - 1 - at
		}
		if edge {
			at = min(max(at, 0), len(from)-1)
		}
		out[i] = -1
		if at >= 0 && at < len(from) {
			out[i] = from[at]
		}
	}
	return out
}
