package images

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/arrays"
)

// one is a batch of one image [h, w] with one channel.
func one[T arrays.Element](h, w int, v ...T) data.Batch {
	return data.Batch{Size: 1, Fields: []data.Field{data.X(v, 1, h, w, 1)}}
}

// Each warp has a result that geometry gives: a quarter turn, and twice the size.
func TestPicture_warp(t *testing.T) {
	p := &picture{h: 2, w: 2, channels: 1, v: []float64{1, 2, 3, 4}}
	p.warp(0, 1, -1, 0)
	require.Equal(t, []float64{2, 4, 1, 3}, p.v, "a quarter turn to the left")
	p = &picture{h: 3, w: 5, channels: 1, v: []float64{0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24}}
	p.warp(0.5, 0, 0, 0.5)
	require.Equal(t, []float64{6, 6.5, 7, 7.5, 8, 11, 11.5, 12, 12.5, 13, 16, 16.5, 17, 17.5, 18}, p.v, "twice as large")
	p = &picture{h: 1, w: 3, channels: 2, v: []float64{1, 10, 2, 20, 3, 30}}
	p.warp(3, 0, 0, 3)
	require.Equal(t, []float64{1, 10, 2, 20, 3, 30}, p.v, "a third of the size: the edge goes on")
}

// The drawn numbers are read from images that show them.
func TestAugmentations_ofNumbers(t *testing.T) {
	angles, factors, plus, contrasts, holes := []float64{}, []float64{}, []float64{}, []float64{}, map[string]int{}
	ramp := make([]float64, 9*9)
	for i := range ramp {
		ramp[i] = float64(i%9) - 4 // the column's distance from the middle
	}
	middle := 4*9 + 4
	for at := range 400 {
		run := func(b data.Batch, change Augmentation) []float64 {
			b.At = at
			got, err := Augment(7, "x", change)(b)
			require.NoError(t, err)
			return got.Fields[0].Array.Flat.([]float64)
		}
		v := run(one(9, 9, ramp...), RandomRotation(30))
		angles = append(angles, math.Atan2(-v[middle+9], v[middle+1])*180/math.Pi)
		factors = append(factors, 1/run(one(9, 9, ramp...), RandomZoom(0.2))[middle+1])
		plus = append(plus, run(one(1, 1, 3.0), RandomBrightness(0.25))[0]-3)
		v = run(one(1, 2, 1.0, 3.0), RandomContrast(0.5))
		require.InDelta(t, 2, (v[0]+v[1])/2, 1e-12, "the mean stays")
		contrasts = append(contrasts, (v[1]-v[0])/2)
		holes[fmt.Sprint(run(one(2, 2, 1.0, 2, 3, 4), Cutout(1)))]++
	}
	for name, row := range map[string]struct {
		got       []float64
		low, high float64
	}{"angle": {angles, -30, 30}, "zoom": {factors, 0.8, 1.2}, "brightness": {plus, -0.25, 0.25}, "contrast": {contrasts, 0.5, 1.5}} {
		sum, low, high := 0.0, math.Inf(1), math.Inf(-1)
		for _, v := range row.got {
			sum, low, high = sum+v, min(low, v), max(high, v)
		}
		wide := row.high - row.low
		require.InDelta(t, (row.low+row.high)/2, sum/400, wide/20, name)
		require.InDelta(t, row.low, low, wide/40, name)
		require.InDelta(t, row.high, high, wide/40, name)
		require.True(t, low >= row.low-1e-6 && high <= row.high+1e-6, name)
	}
	require.Len(t, holes, 4, "each pixel is the middle of a square at times: %v", holes)
	require.Contains(t, holes, "[0 2 3 4]")
}

// Pixels that move and numbers that change take turns, in the order of the list, and each example draws for itself.
func TestAugment_inOrder(t *testing.T) {
	b := data.Batch{Size: 2, At: 5, Fields: []data.Field{data.X([]float32{1, 2, 3, 4, 5, 6}, 2, 1, 3, 1)}}
	f := Augment(3, "x", FlipHorizontal(), RandomBrightness(1), RandomCrop(1, 2, 0), RandomContrast(1), FlipVertical())
	whole, err := f(b)
	require.NoError(t, err)
	require.Equal(t, []int{2, 1, 2, 1}, whole.Fields[0].Array.Dims)
	require.Equal(t, []float32{1, 2, 3, 4, 5, 6}, b.Fields[0].Array.Flat, "the batch stays as it is")
	last, err := b.Slice(1, 2)
	require.NoError(t, err)
	second, err := f(last)
	require.NoError(t, err)
	require.Equal(t, whole.Fields[0].Array.Flat.([]float32)[2:], second.Fields[0].Array.Flat)
	for change, want := range map[*Augmentation]string{
		new(RandomRotation(181)):          "random rotation: an angle of 181: expected 0 to 180",
		new(RandomZoom(-1)):               "random zoom: a share of -1: expected 0 to 0.99",
		new(RandomBrightness(math.NaN())): "random brightness: a number to add of NaN",
		new(RandomContrast(2)):            "random contrast: a share of 2: expected 0 to 1",
		new(Cutout(4)):                    "cutout: a square of 4 pixels in an image of 1 x 3: expected 1 to 3",
	} {
		_, err := Augment(1, "x", *change)(b)
		require.ErrorContains(t, err, want)
	}
	_, err = Augment(1, "x", RandomZoom(0.1))(one[uint8](1, 1, 7))
	require.ErrorContains(t, err, `images: augment: field "x": random zoom: the images are uint8, expected float32 or float64`)
}
