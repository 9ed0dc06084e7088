package data

import (
	"image"
	"image/color"
	"math"
)

// resample writes an image into to, [height, width, channels], at the size of the format.
func resample(from image.Image, format ImageFormat, to []float32) {
	clear(to)
	p := plan(from.Bounds(), format)
	p.run(from, to)
	for i, v := range to { // weights add up to 1 only nearly
		to[i] = min(max(v, 0), 1)
	}
}

// resampling is how an image gets another size: height and width one after the other. Each row of the source is read
// once.
type resampling struct {
	rows, columns []tap
	channels      int
	// narrowFirst: rows are brought to the width of the result before they are added up. Whichever is less work comes
	// first, so that an image of one row or one column costs no more than a square.
	narrowFirst bool
}

func plan(box image.Rectangle, format ImageFormat) resampling {
	top, left, height, width := 0.0, 0.0, float64(box.Dy()), float64(box.Dx())
	if format.Resize == CropCentre {
		scale := min(height/float64(format.Height), width/float64(format.Width))
		h, w := scale*float64(format.Height), scale*float64(format.Width)
		top, left, height, width = (height-h)/2, (width-w)/2, h, w
	}
	p := resampling{rows: weights(box.Dy(), top, height, format.Height), columns: weights(box.Dx(), left, width, format.Width), channels: format.Channels}
	p.narrowFirst = p.work(true) <= p.work(false)
	return p
}

// work is how many numbers are added up, for one channel.
func (p resampling) work(narrowFirst bool) (sum int64) {
	taps := func(of []tap) (sum int64) {
		for _, t := range of {
			sum += int64(len(t.weights))
		}
		return sum
	}
	if narrowFirst {
		return int64(span(p.rows))*taps(p.columns) + taps(p.rows)*int64(len(p.columns))
	}
	return taps(p.rows)*int64(span(p.columns)) + int64(len(p.rows))*taps(p.columns)
}

// span is how many pixels of the source are between the first and the last that is needed.
func span(of []tap) int { return of[len(of)-1].end() - of[0].from }

func (p resampling) run(from image.Image, to []float32) {
	width, whole := len(p.columns)*p.channels, span(p.columns)*p.channels
	line := make([]float32, width) // a row of the source in the result's width
	block := make([]float32, min(blockOf, span(p.columns))*p.channels)
	var pixels []float32       // or in its own
	var open, free [][]float32 // and the rows of the result that are not complete, in that width
	if !p.narrowFirst {
		pixels = make([]float32, whole)
	}
	first, left := 0, p.columns[0].from // of the rows that are not complete
	for at := p.rows[0].from; at < p.rows[len(p.rows)-1].end(); at++ {
		source := line
		if p.narrowFirst {
			clear(line)
			p.narrow(func(x, n int, pixels []float32) { readRow(from, at, x, n, p.channels, pixels) }, block, line)
		} else {
			readRow(from, at, left, span(p.columns), p.channels, pixels)
			source = pixels
		}
		for y := first; y < len(p.rows) && p.rows[y].from <= at; y++ {
			sum := to[y*width : (y+1)*width]
			if !p.narrowFirst {
				if y-first == len(open) {
					if len(free) == 0 {
						free = append(free, make([]float32, whole))
					}
					open, free = append(open, free[len(free)-1]), free[:len(free)-1]
				}
				sum = open[y-first]
			}
			weight := p.rows[y].weights[at-p.rows[y].from]
			for j, v := range source {
				sum[j] += weight * v
			}
		}
		for first < len(p.rows) && p.rows[first].end() == at+1 {
			if !p.narrowFirst {
				sum := open[0]
				p.narrow(func(x, n int, pixels []float32) { copy(pixels, sum[(x-left)*p.channels:(x-left+n)*p.channels]) }, block, to[first*width:(first+1)*width])
				clear(sum)
				open, free = open[1:], append(free, sum)
			}
			first++
		}
	}
}

// blockOf is how many pixels of a row are read at once: a row may have millions.
const blockOf = 4096

// narrow adds a row up to the result's width. Read gives n pixels of the row, from x on.
func (p resampling) narrow(read func(x, n int, pixels []float32), pixels, to []float32) {
	end := p.columns[len(p.columns)-1].end()
	first := 0
	for x := p.columns[0].from; x < end; x += blockOf {
		n := min(blockOf, end-x)
		read(x, n, pixels)
		for first < len(p.columns) && p.columns[first].end() <= x {
			first++
		}
		for i := first; i < len(p.columns) && p.columns[i].from < x+n; i++ {
			column := p.columns[i]
			from, out := max(column.from, x), to[i*p.channels:(i+1)*p.channels]
			for k, weight := range column.weights[from-column.from : min(column.end(), x+n)-column.from] {
				at := (from - x + k) * p.channels
				for c := range out {
					out[c] += weight * pixels[at+c]
				}
			}
		}
	}
}

// tap is the pixels that a pixel of the result is made of.
type tap struct {
	from    int
	weights []float32
}

func (t tap) end() int { return t.from + len(t.weights) }

// weights are those of the triangle filter for n pixels that show the part of a line of size pixels which begins
// at start and has the given length.
func weights(size int, start, length float64, n int) []tap {
	scale := length / float64(n)
	reach := max(scale, 1)
	taps := make([]tap, n)
	for i := range taps {
		centre := start + (float64(i)+0.5)*scale
		from := max(0, int(math.Ceil(centre-reach-0.5)))
		to := min(size, int(math.Floor(centre+reach-0.5))+1)
		from = min(from, size-1)
		to = max(to, from+1)
		weight := func(at int) float64 { return max(0, 1-math.Abs(float64(at)+0.5-centre)/reach) }
		sum := 0.0
		for at := from; at < to; at++ {
			sum += weight(at)
		}
		taps[i] = tap{from, make([]float32, to-from)}
		if sum == 0 {
			taps[i].weights[0] = 1
			continue
		}
		for k := range taps[i].weights {
			taps[i].weights[k] = float32(weight(from+k) / sum)
		}
	}
	return taps
}

// readRow writes n pixels of row y of an image, from x on: 0 to 1, with colours multiplied by their opacity.
func readRow(from image.Image, y, x, n, channels int, to []float32) {
	box := from.Bounds()
	for i := range n {
		r, g, b := colours(from, box.Min.X+x+i, box.Min.Y+y)
		if channels == 1 {
			to[i] = 0.299*r + 0.587*g + 0.114*b
			continue
		}
		to[3*i], to[3*i+1], to[3*i+2] = r, g, b
	}
}

func colours(from image.Image, x, y int) (r, g, b float32) {
	switch i := from.(type) { // the common kinds, without an allocation for each pixel
	case *image.Gray:
		v := float32(i.Pix[i.PixOffset(x, y)]) / 255
		return v, v, v
	case *image.YCbCr:
		c := i.YCbCrAt(x, y)
		r8, g8, b8 := color.YCbCrToRGB(c.Y, c.Cb, c.Cr)
		return float32(r8) / 255, float32(g8) / 255, float32(b8) / 255
	case *image.RGBA:
		c := i.RGBAAt(x, y)
		return float32(c.R) / 255, float32(c.G) / 255, float32(c.B) / 255
	case image.RGBA64Image:
		c := i.RGBA64At(x, y)
		return float32(c.R) / 65535, float32(c.G) / 65535, float32(c.B) / 65535
	}
	r16, g16, b16, _ := from.At(x, y).RGBA()
	return float32(r16) / 65535, float32(g16) / 65535, float32(b16) / 65535
}
