package images

import (
	"image"
	"math"
	"sync"
)

func resample(from image.Image, format Format, to []float32) {
	p := plan(from.Bounds(), format)
	p.run(from, to)
}

type resampling struct {
	rows, columns []tap
	channels      int
	// narrowFirst resizes rows first, if cheaper.
	narrowFirst bool
}

func plan(box image.Rectangle, format Format) resampling {
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

func span(of []tap) int { return of[len(of)-1].end() - of[0].from }

type lines struct {
	narrow, block, pixels []float32
}

var spareLines = sync.Pool{New: func() any { return &lines{} }}

// mostSpare limits the bytes of each kind of memory kept.
const mostSpare = 1 << 20

func room(memory *[]float32, n int) []float32 {
	if n > cap(*memory) {
		made := make([]float32, n)
		if n > mostSpare/4 {
			return made
		}
		*memory = made
	}
	return (*memory)[:n]
}

func (p resampling) run(from image.Image, to []float32) {
	spare := spareLines.Get().(*lines)
	defer spareLines.Put(spare)
	width, whole, left := len(p.columns)*p.channels, span(p.columns), p.columns[0].from
	block := room(&spare.block, min(blockOf, whole)*p.channels)
	source := room(&spare.narrow, width)
	var open, free [][]float32
	if !p.narrowFirst {
		source = room(&spare.pixels, whole*p.channels)
	}
	first := 0
	for at := p.rows[0].from; at < p.rows[len(p.rows)-1].end(); at++ {
		if p.narrowFirst {
			for x := left; x < left+whole; x += blockOf {
				n := min(blockOf, left+whole-x)
				readRow(from, at, x, n, p.channels, block)
				p.narrow(block, x, n, source)
			}
		} else {
			readRow(from, at, left, whole, p.channels, source)
		}
		for y := first; y < len(p.rows) && p.rows[y].from <= at; y++ {
			row := &p.rows[y]
			k := at - row.from
			if p.narrowFirst {
				add(to[y*width:(y+1)*width], source, row.weights[k], k == 0, k == len(row.weights)-1)
				continue
			}
			if y-first == len(open) {
				if len(free) == 0 {
					free = append(free, make([]float32, whole*p.channels))
				}
				open, free = append(open, free[len(free)-1]), free[:len(free)-1]
			}
			add(open[y-first], source, row.weights[k], k == 0, false)
		}
		for first < len(p.rows) && p.rows[first].end() == at+1 {
			if !p.narrowFirst {
				result := to[first*width : (first+1)*width]
				for x := 0; x < whole; x += blockOf {
					n := min(blockOf, whole-x)
					p.narrow(open[0][x*p.channels:(x+n)*p.channels], left+x, n, result)
				}
				atMost1(result)
				free, open = append(free, open[0]), open[1:]
			}
			first++
		}
	}
}

// add's last row limits the sum to 1: the weights' sum is inexact.
func add(to, row []float32, weight float32, first, last bool) {
	row = row[:len(to)]
	switch {
	case first:
		for j, v := range row {
			to[j] = weight * v
		}
	default:
		for j, v := range row {
			to[j] += weight * v
		}
	}
	if last {
		atMost1(to)
	}
}

func atMost1(to []float32) {
	for j, v := range to {
		if v > 1 {
			to[j] = 1
		}
	}
}

// blockOf pixels are read at once: a row may have millions.
const blockOf = 4096

func (p resampling) narrow(pixels []float32, x, n int, to []float32) {
	first := 0
	if x > p.columns[0].from {
		first = p.columnBehind(x)
	}
	for i := first; i < len(p.columns) && p.columns[i].from < x+n; i++ {
		column := &p.columns[i]
		from, weights := column.from, column.weights
		if from < x || from+len(weights) > x+n {
			begins := max(from, x)
			weights = weights[begins-from : min(column.end(), x+n)-from]
			out := to[i*p.channels : (i+1)*p.channels]
			if begins == from {
				clear(out)
			}
			for k, weight := range weights {
				for c := range out {
					out[c] += weight * pixels[(begins-x+k)*p.channels+c]
				}
			}
			continue
		}
		if p.channels == 1 {
			sum := float32(0)
			for k, v := range pixels[from-x : from-x+len(weights)] {
				sum += weights[k] * v
			}
			to[i] = sum
			continue
		}
		var r, g, b float32
		three := pixels[3*(from-x) : 3*(from-x+len(weights))]
		for _, weight := range weights {
			if len(three) < 3 {
				break
			}
			r, g, b = r+weight*three[0], g+weight*three[1], b+weight*three[2]
			three = three[3:]
		}
		out := to[3*i : 3*i+3]
		out[0], out[1], out[2] = r, g, b
	}
}

func (p resampling) columnBehind(x int) int {
	i, j := 0, len(p.columns)
	for i < j {
		if middle := (i + j) / 2; p.columns[middle].end() <= x {
			i = middle + 1
		} else {
			j = middle
		}
	}
	return i
}

type tap struct {
	from    int
	weights []float32
}

func (t tap) end() int { return t.from + len(t.weights) }

// weights are the triangle filter's for n pixels of length source pixels, from start on.
func weights(size int, start, length float64, n int) []tap {
	scale := length / float64(n)
	reach := max(scale, 1)
	taps := make([]tap, n)
	var memory []float32
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
		if to-from > len(memory) {
			memory = make([]float32, max(to-from, min((n-i)*(to-from), 1024)))
		}
		taps[i], memory = tap{from, memory[: to-from : to-from]}, memory[to-from:]
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
