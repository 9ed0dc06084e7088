package images

import (
	"image"
	"image/color"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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

// Pixels that are moved in runs come to where each of them would.
func TestMove_law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, channels := rapid.IntRange(1, 6).Draw(t, "w"), rapid.IntRange(1, 4).Draw(t, "channels")
		columns := rapid.SliceOfN(rapid.IntRange(-1, w-1), 1, 12).Draw(t, "columns")
		rows := rapid.SliceOfN(rapid.IntRange(-1, 1), 1, 4).Draw(t, "rows")
		from := make([]int32, 2*w*channels)
		for i := range from {
			from[i] = int32(i + 1)
		}
		to := of[int32]{}.move(from, []int{1, 2, w, channels}, []int{1, len(rows), len(columns), channels}, func(int) ([]int, []int) { return rows, columns }).([]int32)
		for i, r := range rows {
			for j, c := range columns {
				for k := range channels {
					want := int32(0)
					if r >= 0 && c >= 0 {
						want = from[(r*w+c)*channels+k]
					}
					require.Equal(t, want, to[(i*len(columns)+j)*channels+k])
				}
			}
		}
	})
}
