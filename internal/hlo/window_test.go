package hlo_test

import (
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// window describes windows over an array.
type window struct {
	dims, strides, baseDilations, dilations []int
	paddings                                [][2]int
}

func drawWindow(r *source, dims []int, dilate bool) window {
	var w window
	for _, dim := range dims {
		base, dilation := 1, 1
		if dilate {
			base, dilation = 1+r.IntN(2), 1+r.IntN(2)
		}
		size := 1 + r.IntN(min(2, dim))
		if (size-1)*dilation > (dim-1)*base {
			dilation = 1
		}
		w.dims, w.strides = append(w.dims, size), append(w.strides, 1+r.IntN(2))
		w.baseDilations, w.dilations = append(w.baseDilations, base), append(w.dilations, dilation)
		pad := [2]int{}
		if size > 1 {
			pad = [2]int{r.IntN(2), r.IntN(2)}
		}
		w.paddings = append(w.paddings, pad)
	}
	return w
}

func (w window) out(dims []int) []int {
	out := make([]int, len(dims))
	for axis, dim := range dims {
		have := (dim-1)*w.baseDilations[axis] + 1 + w.paddings[axis][0] + w.paddings[axis][1]
		out[axis] = (have-((w.dims[axis]-1)*w.dilations[axis]+1))/w.strides[axis] + 1
	}
	return out
}

// visit calls f with the flat indices of the elements in the window at place.
func (w window) visit(place, dims []int, f func(i int)) {
	size := 1
	for _, dim := range w.dims {
		size *= dim
	}
next:
	for i := range size {
		from := at(i, w.dims)
		for axis := range from {
			k := place[axis]*w.strides[axis] + from[axis]*w.dilations[axis] - w.paddings[axis][0]
			if k < 0 || k%w.baseDilations[axis] != 0 || k/w.baseDilations[axis] >= dims[axis] {
				continue next
			}
			from[axis] = k / w.baseDilations[axis]
		}
		f(flatAt(from, dims))
	}
}

func setNeutral(a array, i int, kind compute.ReduceOpType) {
	t := a.shape.DType
	switch kind {
	case compute.ReduceOpSum:
		a.set(i, 0)
	case compute.ReduceOpProduct:
		a.set(i, 1)
	default:
		least := kind == compute.ReduceOpMax
		switch {
		case t.IsFloat():
			a.set(i, complex(math.Inf(choose(least, -1, 1)), 0))
		case t.IsUnsigned():
			a.setInteger(i, choose(least, 0, ^uint64(0)))
		default:
			a.setInteger(i, choose(least, uint64(1)<<(8*t.Size()-1), uint64(1)<<(8*t.Size()-1)-1))
		}
	}
}

func selectAndScatterSample(r *source, largest bool) sample {
	t := pick(r, []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.Int32, dtypes.BFloat16})
	dims := drawDims(r, 1, 3)
	w := drawWindow(r, dims, false)
	x := zeros(shapes.Make(t, dims...))
	for i, k := range r.Perm(x.shape.Size()) { // no ties: their winner is unspecified
		x.set(i, complex(float64(k), 0))
	}
	source := small(r, t, w.out(dims)...)
	name := choose(largest, "SelectAndScatterMax", "SelectAndScatterMin")
	return sample{name: name, in: []array{x, source}, exact: tolerances[t] == 0,
		build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
			if largest {
				return one(f.SelectAndScatterMax(in[0], in[1], w.dims, w.strides, w.paddings))
			}
			return one(f.SelectAndScatterMin(in[0], in[1], w.dims, w.strides, w.paddings))
		},
		direct: func(in []array) []array {
			out := zeros(in[0].shape)
			for i := range in[1].shape.Size() {
				best := -1
				w.visit(at(i, in[1].shape.Dimensions), dims, func(j int) {
					if best < 0 || (real(in[0].number(j)) > real(in[0].number(best))) == largest && j != best {
						best = j
					}
				})
				if best >= 0 {
					join("Add", out, best, in[1], i)
				}
			}
			return []array{out}
		}}
}

func scatterSample(r *source, name, by string) sample {
	t := pick(r, choose(by == "Add", numberTypes, realTypes))
	n, m, k := 1+r.IntN(4), 1+r.IntN(4), 1+r.IntN(4)
	x, updates := small(r, t, n, m), small(r, t, k, m)
	indices := draw(r, shapes.Make(pick(r, integerTypes), k, 1), 0, float64(n))
	behind := r.IntN(2) == 0
	if behind {
		indices.shape = shapes.Make(indices.shape.DType, k)
	}
	s := sample{name: name, in: []array{x, indices, updates}, exact: tolerances[t] == 0,
		build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
			scatter := map[string]func(operand, indices, updates compute.Value, vectorAxis int, window, inserted, indexed []int, sorted, unique bool) (compute.Value, error){
				"ScatterSum": f.ScatterSum, "ScatterMax": f.ScatterMax, "ScatterMin": f.ScatterMin,
			}[name]
			return one(scatter(in[0], in[1], in[2], 1, []int{1}, []int{0}, []int{0}, false, false))
		}}
	if behind || !hostHas(t) {
		s.direct = func(in []array) []array {
			out := moved(in[0], in[0], []int{n, m}, func(place []int) []int { return place })
			for i := range in[2].shape.Size() {
				place := at(i, []int{k, m})
				join(by, out, flatAt([]int{int(in[1].integer(place[0])), place[1]}, []int{n, m}), in[2], i)
			}
			return []array{out}
		}
	}
	return s
}

func drawBatch(r *source) (x array, axis, features int) {
	dims := drawDims(r, 2, 4)
	axis = r.IntN(len(dims))
	return small(r, pick(r, []dtypes.DType{dtypes.Float32, dtypes.Float64}), dims...), axis, dims[axis]
}

func moments(x array, axis int) (mean, variance array) {
	features := x.shape.Dimensions[axis]
	n := complex(float64(x.shape.Size()/features), 0)
	mean, variance = zeros(shapes.Make(x.shape.DType, features)), zeros(shapes.Make(x.shape.DType, features))
	first, second := make([]complex128, features), make([]complex128, features)
	for i := range x.shape.Size() {
		first[at(i, x.shape.Dimensions)[axis]] += x.number(i) / n
	}
	for i := range x.shape.Size() {
		f := at(i, x.shape.Dimensions)[axis]
		second[f] += (x.number(i) - first[f]) * (x.number(i) - first[f]) / n
	}
	for f := range features {
		mean.set(f, first[f])
		variance.set(f, second[f])
	}
	return mean, variance
}

// sumProduct accumulates a product, for integers in integer arithmetic.
type sumProduct struct {
	float complex128
	whole uint64
}

func (s *sumProduct) add(x array, i int, y array, j int) {
	if x.shape.DType.IsInt() {
		s.whole += x.integer(i) * y.integer(j)
	} else {
		s.float += x.number(i) * y.number(j)
	}
}

func (s *sumProduct) store(to array, i int) {
	if to.shape.DType.IsInt() {
		to.setInteger(i, s.whole)
	} else {
		to.set(i, s.float)
	}
}

func directDot(lb, rb, lc, rc []int, t dtypes.DType) func(in []array) []array {
	return func(in []array) []array {
		l, r := in[0].shape.Dimensions, in[1].shape.Dimensions
		var dims, lf, rf, inner []int
		for _, axis := range lb {
			dims = append(dims, l[axis])
		}
		for axis, dim := range l {
			if !slices.Contains(lb, axis) && !slices.Contains(lc, axis) {
				dims, lf = append(dims, dim), append(lf, axis)
			}
		}
		for axis, dim := range r {
			if !slices.Contains(rb, axis) && !slices.Contains(rc, axis) {
				dims, rf = append(dims, dim), append(rf, axis)
			}
		}
		size := 1
		for _, axis := range lc {
			inner = append(inner, l[axis])
			size *= l[axis]
		}
		out := zeros(shapes.Make(t, dims...))
		for i := range out.shape.Size() {
			place, from, to := at(i, dims), make([]int, len(l)), make([]int, len(r))
			for k := range lb {
				from[lb[k]], to[rb[k]] = place[k], place[k]
			}
			for k, axis := range lf {
				from[axis] = place[len(lb)+k]
			}
			for k, axis := range rf {
				to[axis] = place[len(lb)+len(lf)+k]
			}
			var sum sumProduct
			for j := range size {
				for k, v := range at(j, inner) {
					from[lc[k]], to[rc[k]] = v, v
				}
				sum.add(in[0], flatAt(from, l), in[1], flatAt(to, r))
			}
			sum.store(out, i)
		}
		return []array{out}
	}
}

func directConvolution(axes compute.ConvolveAxesConfig, strides []int, paddings [][2]int, dilations, kernelDilations []int, groups, batchGroups int) func(in []array) []array {
	return func(in []array) []array {
		x, k := in[0].shape.Dimensions, in[1].shape.Dimensions
		w := window{strides: strides, paddings: paddings, baseDilations: dilations, dilations: kernelDilations}
		var spatial []int
		for i, axis := range axes.InputSpatial {
			spatial, w.dims = append(spatial, x[axis]), append(w.dims, k[axes.KernelSpatial[i]])
		}
		dims := make([]int, len(x))
		for i, dim := range w.out(spatial) {
			dims[axes.OutputSpatial[i]] = dim
		}
		batch, outputs := x[axes.InputBatch]/batchGroups, k[axes.KernelOutputChannels]
		dims[axes.OutputBatch], dims[axes.OutputChannels] = batch, outputs
		out := zeros(shapes.Make(in[0].shape.DType, dims...))
		taps := 1
		for _, dim := range w.dims {
			taps *= dim
		}
		for i := range out.shape.Size() {
			place := at(i, dims)
			n, o := place[axes.OutputBatch], place[axes.OutputChannels]
			var sum sumProduct
		tap:
			for j := range taps {
				tap := at(j, w.dims)
				from, of := make([]int, len(x)), make([]int, len(k))
				for s := range tap {
					v := place[axes.OutputSpatial[s]]*strides[s] + tap[s]*kernelDilations[s] - paddings[s][0]
					if v < 0 || v%dilations[s] != 0 || v/dilations[s] >= spatial[s] {
						continue tap
					}
					from[axes.InputSpatial[s]], of[axes.KernelSpatial[s]] = v/dilations[s], tap[s]
				}
				of[axes.KernelOutputChannels] = o
				from[axes.InputBatch] = o/(outputs/batchGroups)*batch + n
				channels := k[axes.KernelInputChannels]
				for c := range channels {
					of[axes.KernelInputChannels], from[axes.InputChannels] = c, o/(outputs/groups)*channels+c
					sum.add(in[0], flatAt(from, x), in[1], flatAt(of, k))
				}
			}
			sum.store(out, i)
		}
		return []array{out}
	}
}
