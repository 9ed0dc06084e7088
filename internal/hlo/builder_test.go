package hlo_test

import (
	"fmt"
	"maps"
	"math"
	rand "math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

// The capabilities match GoMLX's interface and PJRT's dtypes.
func TestCapabilities(t *testing.T) {
	c := hlo.Capabilities()
	require.True(t, c.Functions)
	require.Equal(t, compute.DynamicShapesNone, c.DynamicShapes)
	claimed := map[string]bool{}
	for kind, has := range c.Operations {
		require.True(t, has)
		claimed[kind.String()] = true
	}
	want := map[string]bool{"Parameter": true}
	for _, name := range operations() {
		want[name] = true
	}
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(claimed)))
	require.Len(t, c.DTypes, len(allTypes))
	for _, kind := range allTypes {
		require.True(t, c.DTypes[kind], kind)
	}
	for kind := pjrt.Bool; kind <= pjrt.F4E2M1FN; kind++ {
		own := dtypes.DType(kind)
		if slices.Contains([]pjrt.DType{ // dtypes of GoMLX without a Go type
			pjrt.Token, pjrt.F8E5M2, pjrt.F8E4M3FN, pjrt.F8E4M3B11FNUZ, pjrt.F8E5M2FNUZ, pjrt.F8E4M3FNUZ,
			pjrt.F8E4M3, pjrt.F8E3M4, pjrt.F8E8M0FNU, pjrt.F4E2M1FN,
		}, kind) {
			require.False(t, c.DTypes[own], kind)
			require.Panics(t, func() { own.GoType() }, "GoMLX can now: %s", kind)
			continue
		}
		require.True(t, c.DTypes[own], kind)
		m := moduleOf(t, "types", func(p program) []compute.Value {
			return []compute.Value{must1(t)(p.Parameter("x", shapes.Make(own, 2), nil))}
		})
		require.Contains(t, m.Text(), "%p0: tensor<2x"+kind.String()+">")
	}
}

// Operations that GPUs and TPUs lack are composed from others, with equal results. Their plugins compile both programs
// for H100 and v5e without devices: docs/maintain/numerics.md.
func TestTargets(t *testing.T) {
	d := open(t)
	random := rand.New(rand.NewPCG(5, 6))
	convolve := func(axes compute.ConvolveAxesConfig, strides []int, paddings [][2]int, in, kernel []int, channelGroups int) func(kind dtypes.DType) ([]array, builds) {
		return func(kind dtypes.DType) ([]array, builds) {
			return []array{elements(random, kind, in...), elements(random, kind, kernel...)}, func(f compute.Function, v []compute.Value) ([]compute.Value, error) {
				y, err := f.ConvGeneral(v[0], v[1], axes, strides, paddings, nil, nil, channelGroups, 1)
				return []compute.Value{y}, err
			}
		}
	}
	image := compute.ConvolveAxesConfig{InputBatch: 0, InputSpatial: []int{1, 2}, InputChannels: 3, KernelSpatial: []int{0, 1}, KernelInputChannels: 2,
		KernelOutputChannels: 3, OutputBatch: 0, OutputSpatial: []int{1, 2}, OutputChannels: 3}
	dot := func(l, r []int, lc, lb, rc, rb []int) func(kind dtypes.DType) ([]array, builds) {
		return func(kind dtypes.DType) ([]array, builds) {
			return []array{elements(random, kind, l...), elements(random, kind, r...)}, func(f compute.Function, v []compute.Value) ([]compute.Value, error) {
				y, err := f.DotGeneral(v[0], lc, lb, v[1], rc, rb, compute.DotGeneralConfig{})
				return []compute.Value{y}, err
			}
		}
	}
	pool := func(least bool, in, window, strides []int, paddings [][2]int) func(kind dtypes.DType) ([]array, builds) {
		return func(kind dtypes.DType) ([]array, builds) {
			windows := make([]int, len(in))
			for i := range in {
				pad := [2]int{}
				if paddings != nil {
					pad = paddings[i]
				}
				windows[i] = (in[i]+pad[0]+pad[1]-window[i])/strides[i] + 1
			}
			return []array{elements(random, kind, in...), elements(random, kind, windows...)}, func(f compute.Function, v []compute.Value) ([]compute.Value, error) {
				take := f.SelectAndScatterMax
				if least {
					take = f.SelectAndScatterMin
				}
				y, err := take(v[0], v[1], window, strides, paddings)
				return []compute.Value{y}, err
			}
		}
	}
	ints := []dtypes.DType{dtypes.Int8, dtypes.Uint8, dtypes.Int16, dtypes.Uint16, dtypes.Int32, dtypes.Uint32, dtypes.Int64, dtypes.Uint64}
	wide := []dtypes.DType{dtypes.Int64, dtypes.Uint64}
	rows := []struct {
		name   string
		target string
		types  []dtypes.DType
		make   func(kind dtypes.DType) ([]array, builds)
	}{
		{"convolution", "gpu", append(ints, dtypes.Complex64, dtypes.Complex128), convolve(image, nil, nil, []int{2, 6, 5, 4}, []int{3, 2, 4, 3}, 0)},
		{"convolution with strides and groups", "gpu", []dtypes.DType{dtypes.Int8, dtypes.Int32, dtypes.Complex64}, convolve(image, []int{2, 1}, [][2]int{{1, 0}, {1, 1}}, []int{2, 6, 5, 4}, []int{3, 3, 2, 6}, 2)},
		{"product", "tpu", wide, dot([]int{5, 7}, []int{7, 3}, []int{1}, nil, []int{0}, nil)},
		{"product in batches", "tpu", wide, dot([]int{4, 2, 5, 3}, []int{2, 6, 3, 5, 2}, []int{2, 3}, []int{1}, []int{3, 2}, []int{0})},
		{"product of vectors", "tpu", wide, dot([]int{7}, []int{7}, []int{0}, nil, []int{0}, nil)},
		{"product of all pairs", "tpu", wide, dot([]int{3}, []int{2}, nil, nil, nil, nil)},
		{"pool", "tpu", append(wide, dtypes.Float64), pool(false, []int{2, 6, 6, 3}, []int{1, 2, 2, 1}, []int{1, 2, 2, 1}, nil)},
		{"pool of windows that overlap", "tpu", append(wide, dtypes.Float64), pool(false, []int{7, 8}, []int{3, 2}, []int{2, 1}, [][2]int{{1, 1}, {1, 0}})},
		{"pool of least", "tpu", append(wide, dtypes.Float64), pool(true, []int{9}, []int{3}, []int{1}, [][2]int{{2, 2}})},
		{"pool along all axes", "tpu", []dtypes.DType{dtypes.Float32, dtypes.Int32}, pool(false, []int{6, 6}, []int{2, 2}, []int{2, 2}, nil)},
		{"pool along the last axis", "tpu", []dtypes.DType{dtypes.Float32, dtypes.Int32}, pool(false, []int{4, 6}, []int{1, 3}, []int{1, 2}, [][2]int{{0, 0}, {1, 0}})},
	}
	for _, target := range []struct {
		name string
		of   func(*hlo.Builder) *hlo.Builder
		// lacks must match no line of the program.
		lacks *regexp.Regexp
	}{
		{"gpu", gpu, regexp.MustCompile(`convolution.*(x[us]?i\d+>|complex)`)},
		{"tpu", tpu, regexp.MustCompile(`dot_general.*xu?i64>`)},
	} {
		t.Run(target.name, func(t *testing.T) {
			var inputs []array
			var names []string
			var parts []builds
			for _, row := range rows {
				for _, kind := range row.types {
					if row.target == target.name {
						in, build := row.make(kind)
						inputs, parts, names = append(inputs, in...), append(parts, build), append(names, fmt.Sprint(row.name, " of ", kind))
					}
				}
			}
			var got [2][]array
			for i, of := range []func(*hlo.Builder) *hlo.Builder{func(b *hlo.Builder) *hlo.Builder { return b }, target.of} {
				b := programOf(of(hlo.New(target.name, d.compile)))
				var in, out []compute.Value
				for j, x := range inputs {
					in = append(in, must1(t)(b.Parameter(fmt.Sprint("x", j), x.shape, nil)))
				}
				for j, build := range parts {
					results, err := build(b.Function, in[2*j:2*j+2])
					require.NoError(t, err, names[j])
					out = append(out, results...)
				}
				exec, err := b.Finish(out)
				require.NoError(t, err)
				defer exec.Finalize()
				got[i], err = execute(d, exec, 1, inputs...)
				require.NoError(t, err)
			}
			if dir := os.Getenv("DUMPOPS"); dir != "" {
				require.NoError(t, os.WriteFile(dir+"/"+target.name+".mlir", []byte(d.last.Text()), 0o644))
			}
			for line := range strings.Lines(d.last.Text()) {
				require.False(t, target.lacks.MatchString(line), line)
			}
			if target.name == "tpu" {
				require.Equal(t, 4, strings.Count(d.last.Text(), "stablehlo.select_and_scatter"), "those of 32 bits")
			}
			compared := 0
			for j, name := range names {
				want, have := reflect.ValueOf(got[0][j].flat), reflect.ValueOf(got[1][j].flat)
				require.Equal(t, got[0][j].shape, got[1][j].shape, name)
				for i := range want.Len() {
					compared++
					switch w, h := want.Index(i), have.Index(i); {
					case w.CanComplex():
						a, b := w.Complex(), h.Complex()
						require.InDelta(t, 0, math.Hypot(real(a-b), imag(a-b)), 1e-4, name)
					case w.CanFloat():
						require.InDelta(t, w.Float(), h.Float(), 1e-12, name)
					default:
						require.Equal(t, w.Interface(), h.Interface(), name)
					}
				}
			}
			t.Logf("%d numbers of %d operations compared", compared, len(names))
		})
	}
}

// Operations that a target cannot run return errors.
func TestTargets_refuse(t *testing.T) {
	for name, row := range map[string]struct {
		target func(*hlo.Builder) *hlo.Builder
		build  func(b program) error
		want   string
	}{
		"a transform of float64 on a TPU": {tpu, func(b program) error {
			x := must(b.Parameter("x", shapes.Make(dtypes.Float64, 4, 8), nil))
			_, err := b.FFT(x, compute.FFTForwardReal, []int{8})
			return err
		}, "elements of type Float64, but a TPU transforms only float32 and complex64"},
		"a transform of complex128 on a TPU": {tpu, func(b program) error {
			x := must(b.Parameter("x", shapes.Make(dtypes.Complex128, 4, 8), nil))
			_, err := b.FFT(x, compute.FFTForward, []int{8})
			return err
		}, "elements of type Complex128, but a TPU transforms only float32 and complex64"},
		"a convolution of int64 on a TPU": {tpu, func(b program) error {
			x, k := must(b.Parameter("x", shapes.Make(dtypes.Int64, 1, 8, 2), nil)), must(b.Parameter("k", shapes.Make(dtypes.Int64, 3, 2, 2), nil))
			_, err := b.ConvGeneral(x, k, alongOne, nil, nil, nil, nil, 1, 1)
			return err
		}, "elements of type Int64, but a TPU convolves integers of 32 bits at most"},
		"a convolution of too many integers on a GPU": {gpu, func(b program) error {
			x, k := must(b.Parameter("x", shapes.Make(dtypes.Int8, 1, 1<<20+1, 2), nil)), must(b.Parameter("k", shapes.Make(dtypes.Int8, 1<<20+1, 2, 2), nil))
			_, err := b.ConvGeneral(x, k, alongOne, nil, nil, nil, nil, 1, 1)
			return err
		}, "2097154 products for each output, but a GPU adds up 2097152 integers at most"},
		"a window of 512 float64 on a TPU": {tpu, func(b program) error {
			x, s := must(b.Parameter("x", shapes.Make(dtypes.Float64, 512), nil)), must(b.Parameter("s", shapes.Make(dtypes.Float64, 1), nil))
			_, err := b.SelectAndScatterMax(x, s, []int{512}, nil, nil)
			return err
		}, "a window of 512 elements of type Float64, but of 64 bits a TPU has 256 at most"},
	} {
		t.Run(name, func(t *testing.T) {
			err := row.build(programOf(row.target(hlo.New("test", nil))))
			require.ErrorContains(t, err, row.want)
			var of *hlo.Error
			require.ErrorAs(t, err, &of)
		})
	}
}

// Every operation refuses operands of another builder, nil operands, and any operand after Compile.
func TestForeignOperands(t *testing.T) {
	other := newOperands(t)
	for _, name := range operations() {
		if name == "Iota" || name == "Constant" {
			continue // they have no operand
		}
		t.Run(name, func(t *testing.T) {
			for _, operand := range []compute.Value{other.f, nil, 7} {
				err := callWith(programOf(hlo.New("own", nil)).Function, name, operand)
				require.ErrorIs(t, err, hlo.ErrForeignOp)
			}
			o := newOperands(t)
			o.program = programOf(hlo.New("compiled", func(*hlo.Module) (compute.Executable, error) { return &executable{}, nil }))
			x := must1(t)(o.Parameter("x", shapes.Make(dtypes.Float32, 2, 3), nil))
			_, err := o.Finish([]compute.Value{x})
			require.NoError(t, err)
			require.ErrorIs(t, callWith(o.Function, name, x), hlo.ErrCompiled)
			_, err = o.OpShape(x)
			require.ErrorIs(t, err, hlo.ErrCompiled)
		})
	}
}
