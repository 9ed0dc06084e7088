package images

import (
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

// mixable returns images whose pixels are the number of their example.
func mixable(n int) data.Batch {
	x, y := make([]float32, n*16), make([]int32, n)
	for i := range n {
		y[i] = int32(i)
		for k := range 16 {
			x[i*16+k] = float32(i)
		}
	}
	return data.Batch{Size: n, At: 3, Fields: []data.Field{data.X(x, n, 4, 4, 1), data.Y(y, n)}}
}

func TestMixUp_CutMix(t *testing.T) {
	const n = 64
	b := mixable(n)
	for name, f := range map[string]func(data.Batch) (data.Batch, error){"mix up": MixUp(1, 1, n), "cut mix": CutMix(1, 1, n)} {
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
			source := func(yield func(data.Batch, error) bool) {
				for at := 0; at < 4*n && yield(data.Batch{Size: n, At: at, Fields: b.Fields}, nil); at += n {
				}
			}
			next, stop := iter.Pull2(data.Map(source, f))
			defer stop()
			for parallel, err := range data.ParallelMap(source, 4, f) {
				require.NoError(t, err)
				one, _, _ := next()
				require.Equal(t, one, parallel)
			}
		})
	}
	three, err := b.Slice(0, 3)
	require.NoError(t, err)
	padded, err := data.Pad(three, 5)
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
	for want, f := range map[string]func() (data.Batch, error){
		`images: mix up: alpha is 0, expected above 0 and at most 8`:                           func() (data.Batch, error) { return MixUp(1, 0, n)(b) },
		`images: mix up: field "y": data: one-hot: label 2 is 2, expected 0 to 1`:              func() (data.Batch, error) { return MixUp(1, 1, 2)(b) },
		`images: cut mix: field "y": labels float32 [5 64], expected integers [n] from 0 to 4`: func() (data.Batch, error) { return CutMix(1, 1, 5)(got) },
		`images: mix up: field "x": the images are uint8`: func() (data.Batch, error) {
			return MixUp(1, 1, 2)(data.Batch{Size: 1, Fields: []data.Field{data.X([]uint8{1}, 1), data.Y([]int32{1}, 1)}})
		},
		`images: cut mix: field "x": dims [1], expected images`: func() (data.Batch, error) {
			return CutMix(1, 1, 2)(data.Batch{Size: 1, Fields: []data.Field{data.X([]uint8{1}, 1), data.Y([]int32{1}, 1)}})
		},
		`images: mix up: the batch has no field "y"`: func() (data.Batch, error) { return MixUp(1, 1, 2)(one[float32](1, 1, 1)) },
	} {
		_, err := f()
		require.ErrorContains(t, err, want)
	}
}
