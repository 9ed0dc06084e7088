package images

import (
	"image"

	"github.com/lazo-ml/lazo/internal/png"
)

var shares, greys [256]float32

// clamped[v+256]: JPEG colours may exceed a byte's range.
var clamped [1024]float32

func init() {
	for v := range shares {
		shares[v] = float32(v) / 255
		greys[v] = luma(shares[v], shares[v], shares[v])
	}
	for i := range clamped {
		clamped[i] = shares[min(max(i-256, 0), 255)]
	}
}

func luma(r, g, b float32) float32 { return 0.299*r + 0.587*g + 0.114*b }

// readRow multiplies by the opacity.
func readRow(from image.Image, y, x, n, channels int, to []float32) {
	to = to[:n*channels]
	box := from.Bounds()
	y, x = y+box.Min.Y, x+box.Min.X
	switch i := from.(type) {
	case *image.Gray:
		readGrey(i.Pix[i.PixOffset(x, y):][:n], to)
	case *image.YCbCr:
		readYCbCr(i, y, x, n, to)
	case *png.RGB:
		readRGB(i.Pix[i.PixOffset(x, y):][:3*n], to)
	case *image.RGBA:
		readRGBA(i.Pix[i.PixOffset(x, y):][:4*n], to)
	case *image.NRGBA:
		readNRGBA(i.Pix[i.PixOffset(x, y):][:4*n], to)
	case image.RGBA64Image:
		for k := range n {
			c := i.RGBA64At(x+k, y)
			put(to, k, n, float32(c.R)/65535, float32(c.G)/65535, float32(c.B)/65535)
		}
	default:
		for k := range n {
			r, g, b, _ := from.At(x+k, y).RGBA()
			put(to, k, n, float32(r)/65535, float32(g)/65535, float32(b)/65535)
		}
	}
}

func put(to []float32, k, n int, r, g, b float32) {
	if len(to) == n {
		to[k] = luma(r, g, b)
		return
	}
	three := to[3*k : 3*k+3]
	three[0], three[1], three[2] = r, g, b
}

func readGrey(pixels []uint8, to []float32) {
	if len(to) == len(pixels) {
		for k, v := range pixels {
			to[k] = greys[v]
		}
		return
	}
	for _, v := range pixels {
		if len(to) < 3 {
			return
		}
		share := shares[v]
		to[0], to[1], to[2] = share, share, share
		to = to[3:]
	}
}

func readRGB(pixels []uint8, to []float32) {
	if len(to) < len(pixels) {
		for k := range to {
			p := pixels[3*k : 3*k+3]
			to[k] = luma(shares[p[0]], shares[p[1]], shares[p[2]])
		}
		return
	}
	for k, v := range pixels {
		to[k] = shares[v]
	}
}

func readRGBA(pixels []uint8, to []float32) {
	n := len(pixels) / 4
	if len(to) == n {
		for k := range n {
			p := pixels[4*k : 4*k+4]
			to[k] = luma(shares[p[0]], shares[p[1]], shares[p[2]])
		}
		return
	}
	for len(pixels) >= 4 && len(to) >= 3 {
		to[0], to[1], to[2] = shares[pixels[0]], shares[pixels[1]], shares[pixels[2]]
		to, pixels = to[3:], pixels[4:]
	}
}

func readNRGBA(pixels []uint8, to []float32) {
	n := len(pixels) / 4
	for k := range n {
		p := pixels[4*k : 4*k+4]
		r, g, b := shares[p[0]], shares[p[1]], shares[p[2]]
		if p[3] != 255 {
			r, g, b = opaque(p[0], p[3]), opaque(p[1], p[3]), opaque(p[2], p[3])
		}
		put(to, k, n, r, g, b)
	}
}

func opaque(v, opacity uint8) float32 {
	return float32(uint32(v)*0x101*(uint32(opacity)*0x101)/0xffff) / 65535
}

func readYCbCr(from *image.YCbCr, y, x, n int, to []float32) {
	light := from.Y[from.YOffset(x, y):][:n]
	shift := 0
	switch from.SubsampleRatio {
	case image.YCbCrSubsampleRatio422, image.YCbCrSubsampleRatio420:
		shift = 1
	case image.YCbCrSubsampleRatio411, image.YCbCrSubsampleRatio410:
		shift = 2
	}
	c := from.COffset(x, y) - x>>shift // no x is negative
	last := c + (x+n-1)>>shift
	blue, red := from.Cb[:last+1], from.Cr[:last+1]
	for k, v := range light {
		at := c + (x+k)>>shift
		cb, cr := int32(blue[at])-128, int32(red[at])-128
		yy := int32(v) * 0x10101
		r := clamped[uint32((yy+91881*cr)>>16+256)&1023]
		g := clamped[uint32((yy-22554*cb-46802*cr)>>16+256)&1023]
		b := clamped[uint32((yy+116130*cb)>>16+256)&1023]
		if len(to) == n {
			to[k] = luma(r, g, b)
			continue
		}
		three := to[3*k : 3*k+3]
		three[0], three[1], three[2] = r, g, b
	}
}
