package hlo_test

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// at converts a flat index to indices; flatAt is its inverse.
func at(i int, dims []int) []int {
	place := make([]int, len(dims))
	for axis := len(dims) - 1; axis >= 0; axis-- {
		place[axis] = i % dims[axis]
		i /= dims[axis]
	}
	return place
}

func flatAt(place, dims []int) int {
	i := 0
	for axis, k := range place {
		i = i*dims[axis] + k
	}
	return i
}

// moved copies elements of x to the places that source maps, and fill where source returns nil.
func moved(x, fill array, dims []int, source func(place []int) []int) array {
	out := zeros(shapes.Make(x.shape.DType, dims...))
	for i := range out.shape.Size() {
		if from := source(at(i, dims)); from != nil {
			copyElement(out, i, x, flatAt(from, x.shape.Dimensions))
		} else {
			copyElement(out, i, fill, 0)
		}
	}
	return out
}

// moveSamples draws the operations that only move elements.
var moveSamples = map[string]func(r *source) sample{
	"Reshape": func(r *source) sample {
		x := drawAny(r, 0, 3)
		dims := slices.Clone(x.shape.Dimensions)
		r.Shuffle(len(dims), func(i, j int) { dims[i], dims[j] = dims[j], dims[i] })
		if r.IntN(2) == 0 {
			dims = []int{x.shape.Size()}
		}
		return host(r, sample{name: "Reshape", in: []array{x},
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.Reshape(in[0], dims...))
			},
			direct: func(in []array) []array {
				return []array{{shapes.Make(in[0].shape.DType, dims...), in[0].flat}}
			}})
	},
	"Transpose": func(r *source) sample {
		x := drawAny(r, 0, 4)
		order := r.Perm(x.shape.Rank())
		dims := make([]int, len(order))
		for i, axis := range order {
			dims[i] = x.shape.Dimensions[axis]
		}
		return host(r, sample{name: "Transpose", in: []array{x},
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.Transpose(in[0], order...))
			},
			direct: func(in []array) []array {
				return []array{moved(in[0], in[0], dims, func(place []int) []int {
					from := make([]int, len(place))
					for i, axis := range order {
						from[axis] = place[i]
					}
					return from
				})}
			}})
	},
	"Reverse": func(r *source) sample {
		x := drawAny(r, 0, 3)
		axes := r.Perm(x.shape.Rank())[:r.IntN(x.shape.Rank()+1)]
		return sample{name: "Reverse", in: []array{x}, exact: true,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.Reverse(in[0], axes...))
			},
			direct: func(in []array) []array {
				return []array{moved(in[0], in[0], in[0].shape.Dimensions, func(place []int) []int {
					for _, axis := range axes {
						place[axis] = in[0].shape.Dimensions[axis] - 1 - place[axis]
					}
					return place
				})}
			}}
	},
	"BroadcastInDim": func(r *source) sample {
		out := drawDims(r, 0, 4)
		var axes, dims []int
		for axis, dim := range out {
			if r.IntN(2) == 0 {
				axes, dims = append(axes, axis), append(dims, choose(r.IntN(2) == 0, 1, dim))
			}
		}
		x := drawShaped(r, pick(r, allTypes), dims)
		return host(r, sample{name: "BroadcastInDim", in: []array{x},
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.BroadcastInDim(in[0], shapes.Make(x.shape.DType, out...), axes))
			},
			direct: func(in []array) []array {
				return []array{moved(in[0], in[0], out, func(place []int) []int {
					from := make([]int, len(axes))
					for i, axis := range axes {
						from[i] = choose(dims[i] == 1, 0, place[axis])
					}
					return from
				})}
			}})
	},
	"Slice": func(r *source) sample {
		x := drawAny(r, 1, 3)
		starts, limits, strides, dims := drawSlice(r, x.shape.Dimensions)
		direct := func(in []array) []array {
			return []array{moved(in[0], in[0], dims, func(place []int) []int {
				for axis := range place {
					place[axis] = starts[axis] + place[axis]*strides[axis]
				}
				return place
			})}
		}
		return host(r, sample{name: "Slice", in: []array{x}, direct: direct,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.Slice(in[0], starts, limits, strides))
			}})
	},
	"Concatenate": func(r *source) sample {
		x := drawAny(r, 1, 3)
		axis := r.IntN(x.shape.Rank())
		in, total := []array{x}, slices.Clone(x.shape.Dimensions)
		for range r.IntN(3) {
			dims := slices.Clone(x.shape.Dimensions)
			dims[axis] = 1 + r.IntN(3)
			total[axis] += dims[axis]
			in = append(in, drawShaped(r, x.shape.DType, dims))
		}
		return host(r, sample{name: "Concatenate", in: in,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.Concatenate(axis, in...))
			},
			direct: func(in []array) []array {
				out := zeros(shapes.Make(x.shape.DType, total...))
				for i := range out.shape.Size() {
					place, from := at(i, total), 0
					for place[axis] >= in[from].shape.Dimensions[axis] {
						place[axis] -= in[from].shape.Dimensions[axis]
						from++
					}
					copyElement(out, i, in[from], flatAt(place, in[from].shape.Dimensions))
				}
				return []array{out}
			}})
	},
	"Pad": func(r *source) sample {
		x := drawAny(r, 0, 3)
		config := make([]compute.PadAxis, r.IntN(x.shape.Rank()+1))
		dims := slices.Clone(x.shape.Dimensions)
		for axis := range config {
			c := compute.PadAxis{Start: r.IntN(4) - 1, End: r.IntN(4) - 1, Interior: r.IntN(3)}
			dims[axis] = c.Start + c.End + dims[axis] + (dims[axis]-1)*c.Interior
			if dims[axis] < 1 {
				c.Start, c.End = 0, 0
				dims[axis] = x.shape.Dimensions[axis] + (x.shape.Dimensions[axis]-1)*c.Interior
			}
			config[axis] = c
		}
		return sample{name: "Pad", in: []array{x, drawShaped(r, x.shape.DType, nil)}, exact: true,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.Pad(in[0], in[1], config...))
			},
			direct: func(in []array) []array {
				return []array{moved(in[0], in[1], dims, func(place []int) []int {
					for axis, c := range config {
						k := place[axis] - c.Start
						if k < 0 || k%(c.Interior+1) != 0 || k/(c.Interior+1) >= x.shape.Dimensions[axis] {
							return nil
						}
						place[axis] = k / (c.Interior + 1)
					}
					return place
				})}
			}}
	},
	"Where": func(r *source) sample {
		t, dims := pick(r, allTypes), drawDims(r, 0, 3)
		in := []array{drawShaped(r, dtypes.Bool, dims), drawShaped(r, t, dims), drawShaped(r, t, dims)}
		if i := r.IntN(4); i < 3 {
			in[i] = drawShaped(r, in[i].shape.DType, nil)
		}
		return host(r, sample{name: "Where", in: in,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.Where(in[0], in[1], in[2]))
			},
			direct: func(in []array) []array {
				c, x, y := spread(in[0], dims), spread(in[1], dims), spread(in[2], dims)
				out := zeros(shapes.Make(t, dims...))
				for i := range out.shape.Size() {
					copyElement(out, i, choose(c.integer(i) != 0, x, y), i)
				}
				return []array{out}
			}})
	},
	"Gather": func(r *source) sample {
		t := pick(r, allTypes)
		n, m, k := 1+r.IntN(4), 1+r.IntN(4), 1+r.IntN(4)
		width := 1 + r.IntN(m)
		x, indices := drawShaped(r, t, []int{n, m}), draw(r, shapes.Make(pick(r, integerTypes), k, 1), 0, float64(n))
		behind := r.IntN(2) == 0
		if behind {
			indices.shape = shapes.Make(indices.shape.DType, k)
		}
		s := sample{name: "Gather", in: []array{x, indices}, exact: true,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.Gather(in[0], in[1], 1, []int{1}, []int{0}, []int{0}, []int{1, width}, false))
			},
			direct: func(in []array) []array {
				return []array{moved(in[0], in[0], []int{k, width}, func(place []int) []int {
					return []int{min(n-1, max(0, int(in[1].integer(place[0])))), place[1]}
				})}
			}}
		if behind {
			return s
		}
		return host(r, s)
	},
	"DynamicSlice": func(r *source) sample {
		x := drawAny(r, 0, 3)
		dims, in := make([]int, x.shape.Rank()), []array{x}
		for axis, dim := range x.shape.Dimensions {
			dims[axis] = 1 + r.IntN(dim)
			in = append(in, draw(r, shapes.Make(pick(r, integerTypes)), -3, 6))
		}
		vector := r.IntN(3) == 0
		return sample{name: "DynamicSlice", in: in, exact: true,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				if vector && len(in) > 1 { // all starts in one vector
					for i := range in[1:] {
						in[1+i] = must(f.Reshape(must(f.ConvertDType(in[1+i], dtypes.Int64)), 1))
					}
					return one(f.DynamicSlice(in[0], []compute.Value{must(f.Concatenate(0, in[1:]...))}, dims))
				}
				return one(f.DynamicSlice(in[0], in[1:], dims))
			},
			direct: func(in []array) []array {
				return []array{moved(in[0], in[0], dims, func(place []int) []int {
					for axis := range place {
						place[axis] += start(in[1+axis], x.shape.Dimensions[axis]-dims[axis])
					}
					return place
				})}
			}}
	},
	"DynamicUpdateSlice": func(r *source) sample {
		x := drawAny(r, 0, 3)
		dims, starts := make([]int, x.shape.Rank()), []array{}
		for axis, dim := range x.shape.Dimensions {
			dims[axis] = 1 + r.IntN(dim)
			starts = append(starts, draw(r, shapes.Make(pick(r, integerTypes)), -3, 6))
		}
		return sample{name: "DynamicUpdateSlice", in: append([]array{x, drawShaped(r, x.shape.DType, dims)}, starts...), exact: true,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.DynamicUpdateSlice(in[0], in[1], in[2:]))
			},
			direct: func(in []array) []array {
				out := moved(in[0], in[0], in[0].shape.Dimensions, func(place []int) []int { return place })
				for i := range in[1].shape.Size() {
					place := at(i, dims)
					for axis := range place {
						place[axis] += start(in[2+axis], x.shape.Dimensions[axis]-dims[axis])
					}
					copyElement(out, flatAt(place, x.shape.Dimensions), in[1], i)
				}
				return []array{out}
			}}
	},
	"Bitcast": func(r *source) sample {
		x := drawAny(r, 0, 2)
		to := pick(r, allTypes)
		if to == dtypes.Bool && x.shape.DType != dtypes.Bool {
			to = dtypes.Uint8 // bools other than 0 and 1 do not keep their bits
		}
		dims := slices.Clone(x.shape.Dimensions)
		have, want := x.shape.DType.Bits(), to.Bits()
		if have < want {
			x = drawShaped(r, x.shape.DType, append(slices.Clone(dims), want/have))
		} else if have > want {
			dims = append(dims, have/want)
		}
		return sample{name: "Bitcast", in: []array{x}, exact: true,
			build: func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
				return one(f.Bitcast(in[0], to))
			},
			direct: func(in []array) []array {
				return []array{fromBits(to, dims, bitsOf(in[0]))}
			}}
	},
	"Iota": func(r *source) sample {
		s := shapes.Make(pick(r, numberTypes), drawDims(r, 1, 3)...)
		axis := r.IntN(s.Rank())
		return sample{name: "Iota", exact: true,
			build: func(f compute.Function, _ []compute.Value) ([]compute.Value, error) { return one(f.Iota(s, axis)) },
			direct: func([]array) []array {
				out := zeros(s)
				for i := range s.Size() {
					out.set(i, complex(float64(at(i, s.Dimensions)[axis]), 0))
				}
				return []array{out}
			}}
	},
	"Constant": func(r *source) sample {
		x := drawShaped(r, pick(r, computedTypes), drawDims(r, 0, 3))
		return sample{name: "Constant", exact: true,
			build: func(f compute.Function, _ []compute.Value) ([]compute.Value, error) {
				return one(f.Constant(x.flat, x.shape.Dimensions...))
			},
			direct: func([]array) []array { return []array{x} }}
	},
}

// bitsOf returns the elements bit by bit, lowest first; fromBits is its inverse.
func bitsOf(a array) (bits []byte) {
	for _, b := range memory(a.flat) {
		for j := range min(8, a.shape.DType.Bits()) {
			bits = append(bits, b>>j&1)
		}
	}
	return bits
}

func fromBits(t dtypes.DType, dims []int, bits []byte) array {
	out := zeros(shapes.Make(t, dims...))
	to := memory(out.flat)
	per := min(8, t.Bits())
	for i, bit := range bits {
		to[i/per] |= bit << (i % per)
	}
	return out
}

func start(index array, most int) int {
	if v := index.integer(0); index.shape.DType.IsUnsigned() {
		return int(min(v, uint64(most)))
	}
	return min(most, max(0, int(index.integer(0))))
}

func drawSlice(r *source, dims []int) (starts, limits, strides, out []int) {
	for _, dim := range dims {
		start := r.IntN(dim)
		limit, stride := start+1+r.IntN(dim-start), 1+r.IntN(3)
		starts, limits, strides = append(starts, start), append(limits, limit), append(strides, stride)
		out = append(out, (limit-start+stride-1)/stride)
	}
	return starts, limits, strides, out
}

func drawShaped(r *source, t dtypes.DType, dims []int) array {
	return draw(r, shapes.Make(t, dims...), -100, 100)
}

func drawAny(r *source, minRank, maxRank int) array {
	s := r.shape(allTypes, minRank, maxRank)
	return drawShaped(r, s.DType, s.Dimensions)
}

// host leaves half of the samples to the pure-Go backend, if it has the dtypes.
func host(r *source, s sample) sample {
	s.exact = true
	for _, x := range s.in {
		if !hostHas(x.shape.DType) {
			return s
		}
	}
	if r.IntN(2) == 0 {
		s.direct = nil
	}
	return s
}

// must is for auxiliary operations of a sample.
func must(op compute.Value, err error) compute.Value {
	if err != nil {
		panic(err)
	}
	return op
}
