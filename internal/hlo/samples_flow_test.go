package hlo_test

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// closure makes a function with parameters and returned values. Half of the closures come from main, as in GoMLX.
func closure(r *source, in compute.Function, parameters []shapes.Shape, body func(f compute.Function, in []compute.Value) ([]compute.Value, error)) (compute.Function, error) {
	if r.IntN(2) == 0 {
		in = in.Builder().Main()
	}
	f, err := in.Closure()
	if err != nil {
		return nil, err
	}
	return f, define(f, parameters, body)
}

func define(f compute.Function, parameters []shapes.Shape, body builds) error {
	values := make([]compute.Value, len(parameters))
	for i, s := range parameters {
		var err error
		if values[i], err = f.Parameter(fmt.Sprint("p", i), s, nil); err != nil {
			return err
		}
	}
	outputs, err := body(f, values)
	if err != nil {
		return err
	}
	return f.Return(outputs, nil)
}

// named makes a function for calls with a new name.
func named(in compute.Function, parameters []shapes.Shape, body builds) (compute.Function, error) {
	for i := 0; ; i++ {
		if f, err := in.Builder().NewFunction(fmt.Sprint("function ", i)); err == nil || i > 1000 {
			return f, cmp.Or(err, define(f, parameters, body))
		}
	}
}

func shapesIn(list []array) (all []shapes.Shape) {
	for _, a := range list {
		all = append(all, a.shape)
	}
	return all
}

// nested puts the operations of a sample into one or two nested branches, loops or functions. The outputs stay equal.
func nested(r *source, build builds, in, want []array) builds {
	inner := build
	if r.IntN(3) == 0 {
		inner = nested(r, build, in, want)
	}
	empty := func(f compute.Function) (list []compute.Value) {
		for _, a := range want {
			list = append(list, must(f.Constant(zeros(a.shape).flat, a.shape.Dimensions...)))
		}
		return list
	}
	kind := r.IntN(3)
	if slices.ContainsFunc(want, func(a array) bool { return a.shape.DType.IsPacked() }) {
		kind = 2 // no constants of packed integers
	}
	return func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
		captured := func(g compute.Function, _ []compute.Value) ([]compute.Value, error) {
			return inner(g, slices.Clone(in))
		}
		switch kind {
		case 0:
			taken, err := closure(r, f, nil, captured)
			if err != nil {
				return nil, err
			}
			other, err := closure(r, f, nil, func(g compute.Function, _ []compute.Value) ([]compute.Value, error) { return empty(g), nil })
			if err != nil {
				return nil, err
			}
			if r.IntN(2) == 0 {
				return f.If(must(f.Constant([]bool{true})), taken, other)
			}
			return f.If(must(f.Constant([]bool{false})), other, taken)
		case 1:
			count := shapes.Make(dtypes.Int32)
			state := append([]shapes.Shape{count}, shapesIn(want)...)
			cond, err := closure(r, f, state, func(g compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(g.LessThan(in[0], must(g.Constant([]int32{1}))))
			})
			if err != nil {
				return nil, err
			}
			body, err := closure(r, f, state, func(g compute.Function, in []compute.Value) ([]compute.Value, error) {
				outputs, err := captured(g, nil)
				return append([]compute.Value{must(g.Add(in[0], must(g.Constant([]int32{1}))))}, outputs...), err
			})
			if err != nil {
				return nil, err
			}
			all, err := f.While(cond, body, append([]compute.Value{must(f.Constant([]int32{0}))}, empty(f)...)...)
			if err != nil {
				return nil, err
			}
			return all[1:], nil
		}
		var parameters []shapes.Shape
		for _, x := range in {
			s, err := f.Shape(x)
			if err != nil {
				return nil, err
			}
			parameters = append(parameters, s)
		}
		called, err := named(f, parameters, inner)
		if err != nil {
			return nil, err
		}
		return f.Call(called, in...)
	}
}

// flowSamples draws operations that take functions, and barriers.
var flowSamples = map[string]func(r *source) sample{
	"If": func(r *source) sample {
		x := drawAny(r, 0, 3)
		y := drawShaped(r, x.shape.DType, x.shape.Dimensions)
		return sample{name: "If", in: []array{drawShaped(r, dtypes.Bool, nil), x, y}, exact: true,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				branch := func(i, j int) compute.Function {
					g, err := closure(r, f, nil, func(compute.Function, []compute.Value) ([]compute.Value, error) {
						return []compute.Value{in[i], in[j], in[i]}, nil
					})
					if err != nil {
						panic(err)
					}
					return g
				}
				return f.If(in[0], branch(1, 2), branch(2, 1))
			},
			direct: func(in []array) []array {
				if in[0].integer(0) != 0 {
					return []array{in[1], in[2], in[1]}
				}
				return []array{in[2], in[1], in[2]}
			}}
	},
	"While": func(r *source) sample {
		name := pick(r, []string{"Add", "Sub", "Mul", "Max", "Min"})
		x := small(r, pick(r, realTypes), drawDims(r, 0, 2)...)
		n := int32(r.IntN(5))
		return sample{name: "While", in: []array{of(nil, n), x, small(r, x.shape.DType, x.shape.Dimensions...)}, exact: tolerances[x.shape.DType] == 0,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				state := []shapes.Shape{shapes.Make(dtypes.Int32), x.shape}
				cond, err := closure(r, f, state, func(g compute.Function, s []compute.Value) ([]compute.Value, error) {
					return one(g.LessThan(s[0], in[0]))
				})
				if err != nil {
					return nil, err
				}
				body, err := closure(r, f, state, func(g compute.Function, s []compute.Value) ([]compute.Value, error) {
					next, err := method(g, name, s[1], in[2])
					return append([]compute.Value{must(g.Add(s[0], must(g.Constant([]int32{1}))))}, next...), err
				})
				if err != nil {
					return nil, err
				}
				return f.While(cond, body, must(f.Constant([]int32{0})), in[1])
			},
			direct: func(in []array) []array {
				y := in[1]
				for range n {
					y = directBinary(name, y.shape.Dimensions, y.shape.DType)([]array{y, in[2]})[0]
				}
				return []array{in[0], y}
			}}
	},
	"Sort": func(r *source) sample {
		x := draw(r, shapes.Make(pick(r, realTypes), drawDims(r, 1, 3)...), -4, 4)
		in := []array{x}
		for range r.IntN(3) {
			in = append(in, drawShaped(r, pick(r, computedTypes), x.shape.Dimensions))
		}
		axis, compare := r.IntN(x.shape.Rank()), pick(r, []string{"LessThan", "GreaterThan"})
		return sample{name: "Sort", in: in, exact: true,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				var pairs []shapes.Shape
				for _, v := range in {
					s, err := f.Shape(v)
					if err != nil {
						return nil, err
					}
					pairs = append(pairs, shapes.Make(s.DType), shapes.Make(s.DType))
				}
				before, err := closure(r, f, pairs, func(g compute.Function, p []compute.Value) ([]compute.Value, error) {
					return method(g, compare, p[0], p[1])
				})
				if err != nil {
					return nil, err
				}
				return f.Sort(before, axis, true, in...)
			},
			direct: func(in []array) []array {
				dims := x.shape.Dimensions
				out := make([]array, len(in))
				for i, a := range in {
					out[i] = zeros(a.shape)
				}
				for i := range x.shape.Size() {
					place := at(i, dims)
					if place[axis] != 0 {
						continue
					}
					line := make([]int, dims[axis])
					for k := range line {
						place[axis] = k
						line[k] = flatAt(place, dims)
					}
					sorted := slices.Clone(line)
					slices.SortStableFunc(sorted, func(a, b int) int {
						c := cmp.Compare(real(in[0].number(a)), real(in[0].number(b)))
						return choose(compare == "LessThan", c, -c)
					})
					for k := range line {
						for j := range in {
							copyElement(out[j], line[k], in[j], sorted[k])
						}
					}
				}
				return out
			}}
	},
	"Call": func(r *source) sample {
		x := drawAny(r, 0, 3)
		y := drawAny(r, 0, 3)
		return sample{name: "Call", in: []array{x, y}, exact: true,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				swap, err := named(f, shapesIn([]array{x, y}), func(_ compute.Function, in []compute.Value) ([]compute.Value, error) {
					return []compute.Value{in[1], in[0]}, nil
				})
				if err != nil {
					return nil, err
				}
				constant, err := named(f, nil, func(g compute.Function, _ []compute.Value) ([]compute.Value, error) {
					return one(g.Constant([]int32{7}))
				})
				if err != nil {
					return nil, err
				}
				outer, err := named(f, shapesIn([]array{x, y}), func(g compute.Function, in []compute.Value) ([]compute.Value, error) {
					swapped, err := g.Call(swap, in...)
					if err != nil {
						return nil, err
					}
					seven, err := g.Call(constant)
					return append(swapped, seven...), err
				})
				if err != nil {
					return nil, err
				}
				return f.Call(outer, in...)
			},
			direct: func(in []array) []array { return []array{in[1], in[0], of(nil, int32(7))} }}
	},
	"OptimizationBarrier": func(r *source) sample {
		in := []array{drawAny(r, 0, 3)}
		if r.IntN(2) == 0 {
			in = append(in, drawAny(r, 0, 3))
		}
		return sample{name: "OptimizationBarrier", in: in, exact: true,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return f.OptimizationBarrier(in...)
			},
			direct: func(in []array) []array { return in }}
	},
	"SchedulingBarrier": func(r *source) sample {
		in := []array{drawAny(r, 0, 3), drawAny(r, 0, 3), drawAny(r, 0, 3)}[:1+r.IntN(3)]
		return sample{name: "SchedulingBarrier", in: in, exact: true,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.SchedulingBarrier(in[0], in[1:]...))
			},
			direct: func(in []array) []array { return in[:1] }}
	},
	"DynamicShape": func(r *source) sample {
		return sample{name: "DynamicShape", in: []array{drawAny(r, 1, 3)}, exact: true,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.DynamicShape(in[0]))
			},
			direct: func(in []array) []array {
				var flat []int32
				for _, dim := range in[0].shape.Dimensions {
					flat = append(flat, int32(dim))
				}
				return []array{of([]int{len(flat)}, flat...)}
			}}
	},
	"DynamicDimensionSize": func(r *source) sample {
		x := drawAny(r, 1, 3)
		axis := r.IntN(x.shape.Rank())
		return sample{name: "DynamicDimensionSize", in: []array{x}, exact: true,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.DynamicDimensionSize(in[0], axis))
			},
			direct: func(in []array) []array { return []array{of(nil, int32(x.shape.Dimensions[axis]))} }}
	},
}
