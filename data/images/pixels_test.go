package images

import (
	"image"
	"image/color"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/png"
)

// Images that are read by special loops have the colours of package color, bit-identical.
func TestReadRow_isThatOfImageColor(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	noise := func(p []uint8) {
		for i := range p {
			p[i] = uint8(r.Uint32())
		}
	}
	box := image.Rect(0, 0, 301, 40)
	grey, rgba, nrgba, grey16 := image.NewGray(box), image.NewRGBA(box), image.NewNRGBA(box), image.NewGray16(box)
	rgb := &png.RGB{Pix: make([]uint8, 904*40), Stride: 904, Rect: box}
	for _, p := range [][]uint8{grey.Pix, rgba.Pix, nrgba.Pix, grey16.Pix, rgb.Pix} {
		noise(p)
	}
	for i := 3; i < len(nrgba.Pix); i += 8 {
		nrgba.Pix[i] = 255
	}
	all := []image.Image{grey, rgba, nrgba, grey16, rgb}
	for ratio := image.YCbCrSubsampleRatio444; ratio <= image.YCbCrSubsampleRatio410; ratio++ {
		m := image.NewYCbCr(box, ratio)
		noise(m.Y)
		noise(m.Cb)
		noise(m.Cr)
		all = append(all, m)
	}
	for _, m := range all {
		for range 60 {
			y, x := r.IntN(40), r.IntN(300)
			n := 1 + r.IntN(301-x)
			got := [][]float32{make([]float32, n), make([]float32, 3*n)}
			readRow(m, y, x, n, 1, got[0])
			readRow(m, y, x, n, 3, got[1])
			for k := range n {
				r, g, b, _ := m.At(x+k, y).RGBA()
				want := []float32{float32(r) / 65535, float32(g) / 65535, float32(b) / 65535}
				if c, ok := m.At(x+k, y).(color.YCbCr); ok { // 16 bits keep more of it than an image on a screen has
					r, g, b := color.YCbCrToRGB(c.Y, c.Cb, c.Cr)
					want = []float32{float32(r) / 255, float32(g) / 255, float32(b) / 255}
				}
				require.Equal(t, want, got[1][3*k:3*k+3], "%T %d, %d", m, x+k, y)
				require.Equal(t, 0.299*want[0]+0.587*want[1]+0.114*want[2], got[0][k])
			}
		}
	}
}
