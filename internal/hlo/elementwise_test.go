package hlo_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

var reduceTypes = map[string][]dtypes.DType{
	"ReduceSum": numberTypes, "ReduceProduct": numberTypes, "ReduceMax": realTypes, "ReduceMin": realTypes,
	"ReduceBitwiseAnd": integerTypes, "ReduceBitwiseOr": integerTypes, "ReduceBitwiseXor": integerTypes,
	"ReduceLogicalAnd": boolType, "ReduceLogicalOr": boolType, "ReduceLogicalXor": boolType,
}

// fold maps a reduction to its elementwise operation.
var fold = map[string]string{
	"ReduceSum": "Add", "ReduceProduct": "Mul", "ReduceMax": "Max", "ReduceMin": "Min",
	"ReduceBitwiseAnd": "BitwiseAnd", "ReduceBitwiseOr": "BitwiseOr", "ReduceBitwiseXor": "BitwiseXor",
	"ReduceLogicalAnd": "LogicalAnd", "ReduceLogicalOr": "LogicalOr", "ReduceLogicalXor": "LogicalXor",
}

// join applies an elementwise operation to single elements and writes the result to the first.
func join(name string, to array, i int, from array, j int) {
	x, y := zeros(shapes.Make(to.shape.DType)), zeros(shapes.Make(to.shape.DType))
	copyElement(x, 0, to, i)
	copyElement(y, 0, from, j)
	copyElement(to, i, directBinary(name, nil, to.shape.DType)([]array{x, y})[0], 0)
}

// small draws numbers whose sums and products of a few stay in range.
func small(r *source, t dtypes.DType, dims ...int) array {
	if t.IsInt() {
		return draw(r, shapes.Make(t, dims...), -4, 4)
	}
	return draw(r, shapes.Make(t, dims...), -1.5, 1.5)
}

func reduceSample(r *source, name string) sample {
	shape := r.shape(reduceTypes[name], 0, 3)
	x := small(r, shape.DType, shape.Dimensions...)
	axes := r.Perm(x.shape.Rank())[:r.IntN(x.shape.Rank()+1)]
	s := sample{name: name, in: []array{x}, exact: tolerances[x.shape.DType] == 0,
		build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
			switch name {
			case "ReduceSum":
				return one(f.ReduceSum(in[0], axes...))
			case "ReduceProduct":
				return one(f.ReduceProduct(in[0], axes...))
			case "ReduceMax":
				return one(f.ReduceMax(in[0], axes...))
			case "ReduceMin":
				return one(f.ReduceMin(in[0], axes...))
			case "ReduceBitwiseAnd":
				return one(f.ReduceBitwiseAnd(in[0], axes...))
			case "ReduceBitwiseOr":
				return one(f.ReduceBitwiseOr(in[0], axes...))
			case "ReduceBitwiseXor":
				return one(f.ReduceBitwiseXor(in[0], axes...))
			case "ReduceLogicalAnd":
				return one(f.ReduceLogicalAnd(in[0], axes...))
			case "ReduceLogicalOr":
				return one(f.ReduceLogicalOr(in[0], axes...))
			case "ReduceLogicalXor":
				return one(f.ReduceLogicalXor(in[0], axes...))
			}
			return nil, fmt.Errorf("no reduction %s", name)
		}}
	if !hostHas(x.shape.DType) || x.shape.DType == dtypes.Int8 || x.shape.Rank() == 0 || // GoMLX panics for the smallest int8
		r.IntN(2) == 0 {
		s.direct = func(in []array) []array {
			over := axes
			if len(over) == 0 {
				for axis := range x.shape.Rank() {
					over = append(over, axis)
				}
			}
			var dims []int
			for axis, dim := range x.shape.Dimensions {
				if !slices.Contains(over, axis) {
					dims = append(dims, dim)
				}
			}
			out := zeros(shapes.Make(x.shape.DType, dims...))
			seen := make([]bool, out.shape.Size())
			for i := range x.shape.Size() {
				var place []int
				for axis, k := range at(i, x.shape.Dimensions) {
					if !slices.Contains(over, axis) {
						place = append(place, k)
					}
				}
				to := flatAt(place, dims)
				if !seen[to] {
					copyElement(out, to, in[0], i)
					seen[to] = true
				} else {
					join(fold[name], out, to, in[0], i)
				}
			}
			return []array{out}
		}
	}
	return s
}

// drawDotConfig makes half of the products accumulate in a larger dtype of the same kind, with that output or their
// own.
func drawDotConfig(r *source, t dtypes.DType) (config compute.DotGeneralConfig) {
	for _, kind := range [][]dtypes.DType{signedTypes, unsignedTypes, floatTypes, complexTypes} {
		larger := slices.DeleteFunc(slices.Clone(kind), func(other dtypes.DType) bool { return other.Bits() < t.Bits() })
		if !slices.Contains(kind, t) || r.IntN(2) == 0 {
			continue
		}
		config.AccumulatorDType = pick(r, larger)
		if r.IntN(2) == 0 {
			config.OutputDType = config.AccumulatorDType
		}
	}
	return config
}

// mathSamples draws products, windows, scatters and conversions.
var mathSamples = map[string]func(r *source) sample{
	"Clamp": func(r *source) sample {
		shape := r.shape(realTypes, 0, 3)
		t, dims := shape.DType, shape.Dimensions
		in := []array{small(r, t, dims...), small(r, t, dims...), small(r, t, dims...)}
		for _, i := range []int{0, 2} {
			if r.IntN(2) == 0 {
				in[i] = small(r, t)
			}
		}
		return sample{name: "Clamp", in: in, exact: true,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.Clamp(in[0], in[1], in[2]))
			},
			direct: func(in []array) []array {
				return directBinary("Min", dims, t)([]array{directBinary("Max", dims, t)(in[:2])[0], in[2]})
			}}
	},
	"ConvertDType": func(r *source) sample {
		from, to, high := r.shape(allTypes, 0, 3), pick(r, allTypes), 100.0
		if to.IsPacked() && (from.DType.IsFloat() || from.DType.IsComplex()) { // floats need not wrap
			high = 1.9
		}
		x := draw(r, from, 0, high)
		return sample{name: "ConvertDType", in: []array{x}, exact: tolerances[x.shape.DType] == 0,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.ConvertDType(in[0], to))
			},
			direct: func(in []array) []array {
				out := zeros(shapes.Make(to, x.shape.Dimensions...))
				for i := range x.shape.Size() {
					switch v := in[0].number(i); {
					case to == dtypes.Bool:
						out.setInteger(i, uint64(real(truth(v != 0))))
					case to.IsComplex():
						out.set(i, v)
					default:
						out.set(i, complex(real(v), 0))
					}
				}
				return []array{out}
			}}
	},
	"ArgMinMax": func(r *source) sample {
		t := pick(r, realTypes)
		x := draw(r, shapes.Make(t, drawDims(r, 1, 3)...), -4, 4)
		for i := range x.shape.Size() { // ties, and NaN
			if j := r.IntN(x.shape.Size()); r.IntN(3) == 0 {
				copyElement(x, i, x, j)
			}
		}
		if t.IsFloat() && r.IntN(4) == 0 {
			x.set(r.IntN(x.shape.Size()), complex(math.NaN(), 0))
		}
		axis, to, least := r.IntN(x.shape.Rank()), pick(r, integerTypes), r.IntN(2) == 0
		s := sample{name: "ArgMinMax", in: []array{x}, exact: true,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.ArgMinMax(in[0], axis, to, least))
			},
			direct: func(in []array) []array {
				dims := slices.Delete(slices.Clone(x.shape.Dimensions), axis, axis+1)
				out := zeros(shapes.Make(to, dims...))
				for i := range out.shape.Size() {
					place := slices.Insert(at(i, dims), axis, 0)
					best := flatAt(place, x.shape.Dimensions)
					for k := range x.shape.Dimensions[axis] {
						place[axis] = k
						j := flatAt(place, x.shape.Dimensions)
						p, q := real(in[0].number(j)), real(in[0].number(best))
						if !math.IsNaN(q) && (math.IsNaN(p) || least && p < q || !least && p > q) {
							best = j
							out.setInteger(i, uint64(k))
						}
					}
				}
				return []array{out}
			}}
		return s
	},
	"DotGeneral": func(r *source) sample {
		t := pick(r, numberTypes)
		config := drawDotConfig(r, t)
		dims := drawDims(r, 6, 6) // batch, batch, contracting, contracting, lhs, rhs
		left, right := []int{0, 1, 2, 3, 4}, []int{0, 1, 2, 3, 5}
		for _, drop := range []int{0, 1, 2, 3} {
			if r.IntN(2) == 0 {
				left, right = slices.DeleteFunc(left, func(i int) bool { return i == drop }), slices.DeleteFunc(right, func(i int) bool { return i == drop })
			}
		}
		if r.IntN(2) == 0 {
			left, right = left[:len(left)-1], right[:len(right)-1]
		}
		side := func(names []int) (x array, contracting, batch []int) {
			r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			var d []int
			for _, name := range names {
				d = append(d, dims[name])
			}
			for name := range 4 {
				if axis := slices.Index(names, name); axis >= 0 && name < 2 {
					batch = append(batch, axis)
				} else if axis >= 0 {
					contracting = append(contracting, axis)
				}
			}
			return small(r, t, d...), contracting, batch
		}
		lhs, lc, lb := side(left)
		rhs, rc, rb := side(right)
		out := cmp.Or(config.OutputDType, t)
		s := sample{name: "DotGeneral", in: []array{lhs, rhs}, exact: tolerances[t] == 0 && tolerances[out] == 0,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.DotGeneral(in[0], lc, lb, in[1], rc, rb, config))
			}}
		if !hostHas(t) || config != (compute.DotGeneralConfig{}) || r.IntN(2) == 0 {
			s.direct = directDot(lb, rb, lc, rc, out)
		}
		return s
	},
	"ConvGeneral": func(r *source) sample {
		t, spatial := pick(r, floatTypes), 1+r.IntN(2)
		if r.IntN(5) == 0 {
			t = pick(r, []dtypes.DType{dtypes.Int32, dtypes.Complex64})
		}
		groups, batchGroups := 1, 1
		switch r.IntN(3) {
		case 0:
			groups = 2
		case 1:
			batchGroups = 2
		}
		order := func() []int { return r.Perm(spatial + 2) }
		in, k, out := order(), order(), order()
		axes := compute.ConvolveAxesConfig{
			InputBatch: in[0], InputChannels: in[1], InputSpatial: in[2:],
			KernelInputChannels: k[0], KernelOutputChannels: k[1], KernelSpatial: k[2:],
			OutputBatch: out[0], OutputChannels: out[1], OutputSpatial: out[2:],
		}
		x, kernel := make([]int, spatial+2), make([]int, spatial+2)
		channels := 1 + r.IntN(2)
		x[in[0]], x[in[1]] = 2*batchGroups, channels*groups
		kernel[k[0]], kernel[k[1]] = channels, 2*groups*batchGroups
		var strides, dilations, kernelDilations []int
		var paddings [][2]int
		for i := range spatial {
			x[in[2+i]], kernel[k[2+i]] = 3+r.IntN(3), 1+r.IntN(2)
			strides, paddings = append(strides, 1+r.IntN(2)), append(paddings, [2]int{r.IntN(2), r.IntN(2)})
			dilations, kernelDilations = append(dilations, 1+r.IntN(2)), append(kernelDilations, 1+r.IntN(2))
		}
		return sample{name: "ConvGeneral", in: []array{small(r, t, x...), small(r, t, kernel...)}, exact: tolerances[t] == 0,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.ConvGeneral(in[0], in[1], axes, strides, paddings, dilations, kernelDilations, groups, batchGroups))
			},
			direct: directConvolution(axes, strides, paddings, dilations, kernelDilations, groups, batchGroups)}
	},
	"ReduceWindow": func(r *source) sample {
		t := pick(r, realTypes)
		x := small(r, t, drawDims(r, 1, 3)...)
		kind := pick(r, []compute.ReduceOpType{compute.ReduceOpSum, compute.ReduceOpProduct, compute.ReduceOpMax, compute.ReduceOpMin})
		w := drawWindow(r, x.shape.Dimensions, true)
		s := sample{name: "ReduceWindow", in: []array{x}, exact: tolerances[t] == 0,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.ReduceWindow(in[0], kind, w.dims, w.strides, w.baseDilations, w.dilations, w.paddings))
			},
			direct: func(in []array) []array {
				out := zeros(shapes.Make(t, w.out(x.shape.Dimensions)...))
				for i := range out.shape.Size() {
					seen := false
					w.visit(at(i, out.shape.Dimensions), x.shape.Dimensions, func(j int) {
						if !seen {
							copyElement(out, i, in[0], j)
						} else {
							join(map[compute.ReduceOpType]string{1: "Add", 2: "Mul", 3: "Max", 4: "Min"}[kind], out, i, in[0], j)
						}
						seen = true
					})
					if !seen { // the neutral element
						setNeutral(out, i, kind)
					}
				}
				return []array{out}
			}}
		return s
	},
	"SelectAndScatterMax": func(r *source) sample { return selectAndScatterSample(r, true) },
	"SelectAndScatterMin": func(r *source) sample { return selectAndScatterSample(r, false) },
	"ScatterSum":          func(r *source) sample { return scatterSample(r, "ScatterSum", "Add") },
	"ScatterMax":          func(r *source) sample { return scatterSample(r, "ScatterMax", "Max") },
	"ScatterMin":          func(r *source) sample { return scatterSample(r, "ScatterMin", "Min") },
}
