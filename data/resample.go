package data

import (
	"image"
	"image/color"
	"math"
)

// resample writes an image into to, [height, width, channels], at the size of the format.
func resample(from image.Image, format ImageFormat, to []float32) {
	box := from.Bounds()
	top, left, height, width := 0.0, 0.0, float64(box.Dy()), float64(box.Dx())
	if format.Resize == CropCentre {
		scale := min(height/float64(format.Height), width/float64(format.Width))
		h, w := scale*float64(format.Height), scale*float64(format.Width)
		top, left, height, width = (height-h)/2, (width-w)/2, h, w
	}
	rows := weights(box.Dy(), top, height, format.Height)
	columns := weights(box.Dx(), left, width, format.Width)
	channels := format.Channels

	// Rows of the source are shrunk in width once, as they are first needed, and kept while a row of the result may need them.
	narrow := make(map[int][]float32)
	pixels := make([]float32, box.Dx()*channels)
	for y, row := range rows {
		for at := range narrow {
			if at < row.from {
				delete(narrow, at)
			}
		}
		out := to[y*format.Width*channels : (y+1)*format.Width*channels]
		clear(out)
		for i, weight := range row.weights {
			at := row.from + i
			if narrow[at] == nil {
				readRow(from, box.Min.Y+at, channels, pixels)
				narrow[at] = shrink(pixels, columns, channels)
			}
			for j, v := range narrow[at] {
				out[j] += weight * v
			}
		}
		for j, v := range out { // weights add up to 1 only nearly
			out[j] = min(max(v, 0), 1)
		}
	}
}

// tap is the pixels that a pixel of the result is made of.
type tap struct {
	from    int
	weights []float32
}

// weights are those of the triangle filter for n pixels that stand for the part of a line of size pixels which begins at start
// and has the given length.
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
		raw := make([]float64, to-from)
		sum := 0.0
		for k := range raw {
			raw[k] = max(0, 1-math.Abs(float64(from+k)+0.5-centre)/reach)
			sum += raw[k]
		}
		if sum == 0 {
			raw[0], sum = 1, 1
		}
		taps[i] = tap{from, make([]float32, len(raw))}
		for k, v := range raw {
			taps[i].weights[k] = float32(v / sum)
		}
	}
	return taps
}

func shrink(pixels []float32, columns []tap, channels int) []float32 {
	out := make([]float32, len(columns)*channels)
	for x, column := range columns {
		for i, weight := range column.weights {
			at := (column.from + i) * channels
			for c := range channels {
				out[x*channels+c] += weight * pixels[at+c]
			}
		}
	}
	return out
}

// readRow writes the row y of an image, 0 to 1, with colours multiplied by their opacity.
func readRow(from image.Image, y, channels int, to []float32) {
	box := from.Bounds()
	for x := range box.Dx() {
		r, g, b := colours(from, box.Min.X+x, y)
		if channels == 1 {
			to[x] = 0.299*r + 0.587*g + 0.114*b
			continue
		}
		to[3*x], to[3*x+1], to[3*x+2] = r, g, b
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
	}
	r16, g16, b16, _ := from.At(x, y).RGBA()
	return float32(r16) / 65535, float32(g16) / 65535, float32(b16) / 65535
}
