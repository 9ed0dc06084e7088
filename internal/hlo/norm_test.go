package hlo_test

import (
	"math"
	"math/cmplx"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// normSamples draws normalizations, transforms and the collective operation.
var normSamples = map[string]func(r *source) sample{
	"BatchNormForInference": func(r *source) sample {
		x, axis, features := drawBatch(r)
		t := x.shape.DType
		return sample{name: "BatchNormForInference", in: []array{x, small(r, t, features), small(r, t, features), small(r, t, features), draw(r, shapes.Make(t, features), 0.5, 2)},
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.BatchNormForInference(in[0], in[1], in[2], in[3], in[4], 0.125, axis))
			},
			direct: func(in []array) []array {
				out := zeros(x.shape)
				for i := range x.shape.Size() {
					f := at(i, x.shape.Dimensions)[axis]
					v := (in[0].number(i) - in[3].number(f)) / cmplx.Sqrt(in[4].number(f)+0.125)
					out.set(i, v*in[1].number(f)+in[2].number(f))
				}
				return []array{out}
			}}
	},
	"BatchNormForTraining": func(r *source) sample {
		x, axis, features := drawBatch(r)
		t := x.shape.DType
		return sample{name: "BatchNormForTraining", in: []array{x, small(r, t, features), small(r, t, features)},
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				y, mean, variance, err := f.BatchNormForTraining(in[0], in[1], in[2], 0.125, axis)
				return []compute.Value{y, mean, variance}, err
			},
			direct: func(in []array) []array {
				mean, variance := moments(in[0], axis)
				out := zeros(x.shape)
				for i := range x.shape.Size() {
					f := at(i, x.shape.Dimensions)[axis]
					out.set(i, (in[0].number(i)-mean.number(f))/cmplx.Sqrt(variance.number(f)+0.125)*in[1].number(f)+in[2].number(f))
				}
				return []array{out, mean, variance}
			}}
	},
	"BatchNormGradient": func(r *source) sample {
		x, axis, features := drawBatch(r)
		mean, variance := moments(x, axis)
		const epsilon = 0.125
		return sample{name: "BatchNormGradient", in: []array{x, small(r, x.shape.DType, features), mean, variance, small(r, x.shape.DType, x.shape.Dimensions...)},
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				dx, dScale, dOffset, err := f.BatchNormGradient(in[0], in[1], in[2], in[3], in[4], epsilon, axis)
				return []compute.Value{dx, dScale, dOffset}, err
			},
			direct: func(in []array) []array {
				n := complex(float64(x.shape.Size()/features), 0)
				dx, dScale, dOffset := zeros(x.shape), make([]complex128, features), make([]complex128, features)
				for i := range x.shape.Size() {
					f := at(i, x.shape.Dimensions)[axis]
					hat := (in[0].number(i) - in[2].number(f)) / cmplx.Sqrt(in[3].number(f)+epsilon)
					dScale[f] += in[4].number(i) * hat
					dOffset[f] += in[4].number(i)
				}
				for i := range x.shape.Size() {
					f := at(i, x.shape.Dimensions)[axis]
					root := cmplx.Sqrt(in[3].number(f) + epsilon)
					hat := (in[0].number(i) - in[2].number(f)) / root
					dx.set(i, in[1].number(f)/root/n*(n*in[4].number(i)-dOffset[f]-hat*dScale[f]))
				}
				s, o := zeros(in[1].shape), zeros(in[1].shape)
				for f := range features {
					s.set(f, dScale[f])
					o.set(f, dOffset[f])
				}
				return []array{dx, s, o}
			}}
	},
	"FFT": func(r *source) sample {
		n, kind := 1+r.IntN(6), compute.FFTType(r.IntN(4))
		in, out := n, n
		t, to := pick(r, complexTypes), dtypes.InvalidDType
		to = t
		switch kind {
		case compute.FFTForwardReal:
			t, out = t.RealDType(), n/2+1
		case compute.FFTInverseReal:
			to, in = t.RealDType(), n/2+1
		}
		x := small(r, t, 2, in)
		if kind == compute.FFTInverseReal { // must be the transform of real numbers
			for row := range 2 {
				x.set(row*in, complex(real(x.number(row*in)), 0))
				if n%2 == 0 {
					x.set(row*in+in-1, complex(real(x.number(row*in+in-1)), 0))
				}
			}
		}
		return sample{name: "FFT", in: []array{x},
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.FFT(in[0], kind, []int{n}))
			},
			direct: func(a []array) []array {
				y := zeros(shapes.Make(to, 2, out))
				for row := range 2 {
					full := make([]complex128, n)
					for i := range n {
						if i < in {
							full[i] = a[0].number(row*in + i)
						} else {
							full[i] = cmplx.Conj(a[0].number(row*in + n - i))
						}
					}
					sign, scale := -1.0, 1.0
					if kind == compute.FFTInverse || kind == compute.FFTInverseReal {
						sign, scale = 1, 1/float64(n)
					}
					for k := range out {
						sum := complex128(0)
						for i, v := range full {
							sum += v * cmplx.Rect(scale, sign*2*math.Pi*float64(i*k)/float64(n))
						}
						y.set(row*out+k, sum)
					}
				}
				return []array{y}
			}}
	},
	"AllReduce": func(r *source) sample {
		return sample{name: "AllReduce", in: []array{small(r, dtypes.Float32, 2), small(r, dtypes.Int32), small(r, dtypes.Float32)}, exact: true,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return f.AllReduce(in, compute.ReduceOpSum, [][]int{{0}})
			},
			direct: func(in []array) []array { return in }}
	},
}
