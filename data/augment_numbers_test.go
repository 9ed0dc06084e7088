package data

import (
	"fmt"
	"iter"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// one is a batch of one image [h, w] with one channel.
func one[T element](h, w int, v ...T) Batch {
	return Batch{Size: 1, Fields: []Field{X(v, 1, h, w, 1)}}
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
		run := func(b Batch, change Augmentation) []float64 {
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
	b := Batch{Size: 2, At: 5, Fields: []Field{X([]float32{1, 2, 3, 4, 5, 6}, 2, 1, 3, 1)}}
	f := Augment(3, "x", FlipHorizontal(), RandomBrightness(1), RandomCrop(1, 2, 0), RandomContrast(1), FlipVertical())
	whole, err := f(b)
	require.NoError(t, err)
	require.Equal(t, []int{2, 1, 2, 1}, whole.Fields[0].Array.Dims)
	require.Equal(t, []float32{1, 2, 3, 4, 5, 6}, b.Fields[0].Array.Flat, "the batch stays as it is")
	second, err := f(b.slice(1, 2, 2))
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
	require.ErrorContains(t, err, `data: augment: field "x": random zoom: the images are uint8, expected float32 or float64`)
}

// mixable returns images whose pixels are the number of their example.
func mixable(n int) Batch {
	x, y := make([]float32, n*16), make([]int32, n)
	for i := range n {
		y[i] = int32(i)
		for k := range 16 {
			x[i*16+k] = float32(i)
		}
	}
	return Batch{Size: n, At: 3, Fields: []Field{X(x, n, 4, 4, 1), Y(y, n)}}
}

func TestMixUp_CutMix(t *testing.T) {
	const n = 64
	b := mixable(n)
	for name, f := range map[string]func(Batch) (Batch, error){"mix up": MixUp(1, 1, n), "cut mix": CutMix(1, 1, n)} {
		t.Run(name, func(t *testing.T) {
			got, err := f(b)
			require.NoError(t, err)
			again, err := f(b)
			require.NoError(t, err)
			require.Equal(t, got.Fields, again.Fields)
			require.Equal(t, []int{n, n}, got.Fields[1].Array.Dims)
			x, y := got.Fields[0].Array.Flat.([]float32), got.Fields[1].Array.Flat.([]float32)
			kept := 0.0
			for i := range n {
				sum, mean, pixels := 0.0, 0.0, map[float32]float64{}
				for k := range n {
					sum += float64(y[i*n+k])
					mean += float64(y[i*n+k]) * float64(k)
				}
				for _, v := range x[i*16 : (i+1)*16] {
					pixels[v] += 1.0 / 16
				}
				require.InDelta(t, 1, sum, 1e-6)
				kept += float64(y[i*n+i])
				if name == "mix up" {
					require.Len(t, pixels, 1)
					require.InDelta(t, mean, float64(x[i*16]), 1e-4, "the image is mixed as its label")
					continue
				}
				for v, share := range pixels {
					require.InDelta(t, share, float64(y[i*n+int(v)]), 1e-6, "the label has the share of the pixels")
				}
			}
			require.InDelta(t, map[string]float64{"mix up": 0.5, "cut mix": 0.65}[name], kept/n, 0.1, "the mean of the share that is kept")
			require.Equal(t, mixable(n), b, "the batch stays as it is")
			source := func(yield func(Batch, error) bool) {
				for at := 0; at < 4*n && yield(Batch{Size: n, At: at, Fields: b.Fields}, nil); at += n {
				}
			}
			next, stop := iter.Pull2(Map(source, f))
			defer stop()
			for parallel, err := range ParallelMap(source, 4, f) {
				require.NoError(t, err)
				one, _, _ := next()
				require.Equal(t, one, parallel)
			}
		})
	}
	padded, err := Pad(b.slice(0, 3, n), 5)
	require.NoError(t, err)
	got, err := MixUp(1, 0.5, n)(padded)
	require.NoError(t, err)
	for i := range 5 { // padding rows repeat an example or are zeros, and are in no mean
		for k := 3; k < n; k++ {
			require.Zero(t, got.Fields[1].Array.Flat.([]float32)[i*n+k])
		}
	}
	soft, err := MixUp(2, 1, n)(got)
	require.NoError(t, err, "labels that are probabilities already")
	require.Equal(t, []int{5, n}, soft.Fields[1].Array.Dims)
	for want, f := range map[string]func() (Batch, error){
		`data: mix up: alpha is 0, expected above 0 and at most 8`:                           func() (Batch, error) { return MixUp(1, 0, n)(b) },
		`data: mix up: field "y": data: one-hot: label 2 is 2, expected 0 to 1`:              func() (Batch, error) { return MixUp(1, 1, 2)(b) },
		`data: cut mix: field "y": labels float32 [5 64], expected integers [n] from 0 to 4`: func() (Batch, error) { return CutMix(1, 1, 5)(got) },
		`data: mix up: field "x": the images are uint8`: func() (Batch, error) {
			return MixUp(1, 1, 2)(Batch{Size: 1, Fields: []Field{X([]uint8{1}, 1), Y([]int32{1}, 1)}})
		},
		`data: cut mix: field "x": dims [1], expected images`: func() (Batch, error) {
			return CutMix(1, 1, 2)(Batch{Size: 1, Fields: []Field{X([]uint8{1}, 1), Y([]int32{1}, 1)}})
		},
		`data: mix up: data: the batch has no field "y"`: func() (Batch, error) { return MixUp(1, 1, 2)(one[float32](1, 1, 1)) },
	} {
		_, err := f()
		require.ErrorContains(t, err, want)
	}
}
