package images

import (
	"bytes"
	"image"
	"image/png"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data/internal/datatest"
)

// An image of one row or one column takes no more work or memory than a square of as many pixels, whatever it becomes.
//
//lazo:norace
func TestF47_imagesOfExtremeAspect(t *testing.T) {
	const pixels = 1 << 16 // for the sums: they grow with it
	worst, cases := 0.0, 0
	for _, resize := range []Resize{Stretch, CropCentre} {
		for _, h := range []int{1, 2, 28, 224, imageSide} {
			for _, w := range []int{1, 2, 28, 224, imageSide} {
				work := func(side int, resize Resize) float64 {
					p := plan(image.Rect(0, 0, side, pixels/side), Format{Height: h, Width: w, Channels: 3, Resize: resize})
					return float64(p.work(p.narrowFirst) + int64(span(p.rows))*int64(span(p.columns)))
				}
				square := work(1<<8, Stretch) // a crop of it may be of a few pixels
				for side := 1; side <= pixels; side *= 4 {
					ratio := work(side, resize) / square
					require.LessOrEqual(t, ratio, 10.0, "%d x %d to %d x %d, resize %d", pixels/side, side, h, w, resize)
					worst, cases = max(worst, ratio), cases+1
				}
			}
		}
	}
	t.Logf("F47: %d pairs of sizes: at most %.1f times the work of a square image", cases, worst)

	share := 0.0
	for _, size := range []image.Point{{1, imagePixels}, {imagePixels, 1}} {
		m := image.NewNRGBA64(image.Rectangle{Max: size}) // the most that a pixel takes
		for _, format := range []Format{{Height: 224, Width: 224, Channels: 3, Resize: Stretch}, {Height: 2, Width: imageSide, Channels: 3, Resize: Stretch}} {
			to := make([]float32, format.Height*format.Width*format.Channels)
			took := datatest.Allocated(func() { resample(m, format, to) }) + uint64(len(m.Pix))
			require.Less(t, took, uint64(64<<20+16*imagePixels), "%v to %d x %d", size, format.Height, format.Width)
			share = max(share, float64(took)/(64<<20+16*imagePixels))
		}
	}
	t.Logf("F47: at most %.0f %% of 64 MB and 16 bytes a pixel", 100*share)
}

// R28: a file of 8 KB that took 49 s and 3.2 GB.
//
//lazo:norace
func TestR28_oneColumnOfFourMillionPixels(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, png.Encode(&file, image.NewGray(image.Rect(0, 0, 1, 1<<22))))
	began := time.Now()
	took := datatest.Allocated(func() {
		a, err := Read(bytes.NewReader(file.Bytes()), Format{Height: 224, Width: 224, Resize: Stretch})
		require.NoError(t, err)
		require.NoError(t, a.Check())
	})
	require.Less(t, took, uint64(128<<20))
	t.Logf("%d bytes of file: %v, %d MB", file.Len(), time.Since(began).Round(time.Millisecond), took>>20)
}

// In either order of height and width the numbers are the same.
func TestR28_theOrderDoesNotMatter(t *testing.T) {
	m := ramp(37, 53)
	for _, format := range []Format{{Height: 5, Width: 90, Channels: 3}, {Height: 90, Width: 5, Channels: 1}, {Height: 100, Width: 100, Channels: 3, Resize: CropCentre}, {Height: 3, Width: 4, Channels: 3}} {
		var got [2][]float32
		for i := range got {
			p := plan(m.Bounds(), format)
			p.narrowFirst = i == 0
			got[i] = make([]float32, format.Height*format.Width*format.Channels)
			p.run(m, got[i])
		}
		require.InDeltaSlice(t, got[0], got[1], 1e-6)
	}
}
