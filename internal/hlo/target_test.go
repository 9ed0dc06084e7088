package hlo_test

import (
	"math/rand/v2"
	"reflect"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// gpu and tpu are targets with other forms of some operations.
func gpu(b *hlo.Builder) *hlo.Builder { return b.ForGPU(true) }
func tpu(b *hlo.Builder) *hlo.Builder { return b.ForTPU(true) }

// elements are random, over an integer's whole range. XLA chooses among equal elements of a window.
func elements(r *rand.Rand, kind dtypes.DType, dims ...int) array {
	s := shapes.Make(kind, dims...)
	flat := reflect.MakeSlice(reflect.SliceOf(kind.GoType()), s.Size(), s.Size())
	for i := range s.Size() {
		switch e := flat.Index(i); {
		case e.CanInt():
			e.SetInt(int64(r.Uint64()) >> r.IntN(40) << (64 - kind.Bits()) >> (64 - kind.Bits()))
		case e.CanUint():
			e.SetUint(r.Uint64() >> r.IntN(40) & (1<<kind.Bits() - 1))
		case e.CanComplex():
			e.SetComplex(complex(r.NormFloat64(), r.NormFloat64()))
		default:
			e.SetFloat(float64(float32(r.NormFloat64())))
		}
	}
	return array{s, flat.Interface()}
}

var alongOne = compute.ConvolveAxesConfig{InputBatch: 0, InputSpatial: []int{1}, InputChannels: 2, KernelSpatial: []int{0}, KernelInputChannels: 1,
	KernelOutputChannels: 2, OutputBatch: 0, OutputSpatial: []int{1}, OutputChannels: 2}
