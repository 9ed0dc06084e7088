package hlo

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/go-xla/stablehlo"
	"github.com/gomlx/go-xla/types"
)

// ConvGeneral allows one group count above 1.
func (f *Function) ConvGeneral(
	input, kernel compute.Value, axes compute.ConvolveAxesConfig,
	strides []int, paddings [][2]int, inputDilations, kernelDilations []int,
	channelGroupCount, batchGroupCount int,
) (compute.Value, error) {
	return f.emitOne(compute.OpTypeConvGeneral, []compute.Value{input, kernel}, func(v []*value) (*value, error) {
		if err := number.need(v...); err != nil {
			return nil, err
		}
		if err := sameType(v...); err != nil {
			return nil, err
		}
		spatial := max(0, v[0].Shape().Rank()-2)
		channelGroupCount, batchGroupCount := max(1, channelGroupCount), max(1, batchGroupCount)
		strides, inputDilations, kernelDilations := orOnes(strides, spatial), orOnes(inputDilations, spatial), orOnes(kernelDilations, spatial)
		if len(paddings) == 0 {
			paddings = make([][2]int, spatial)
		}
		for _, a := range []struct {
			name string
			list []int
		}{
			{"axes of the input", slices.Concat([]int{axes.InputBatch, axes.InputChannels}, axes.InputSpatial)},
			{"axes of the kernel", slices.Concat([]int{axes.KernelInputChannels, axes.KernelOutputChannels}, axes.KernelSpatial)},
			{"axes of the output", slices.Concat([]int{axes.OutputBatch, axes.OutputChannels}, axes.OutputSpatial)},
		} {
			if err := checkAxes(a.name, a.list, v[0].Shape().Rank()); err != nil {
				return nil, err
			}
		}
		_, err := shapeinference.ConvGeneral(shapeOf(v[0]), shapeOf(v[1]), axes, strides, paddings, inputDilations, kernelDilations, channelGroupCount, batchGroupCount)
		if err != nil {
			return nil, err
		}
		places, window := make([]int, spatial), make([]int, spatial)
		for i := range spatial {
			places[i], window[i] = dims(v[0])[axes.InputSpatial[i]], dims(v[1])[axes.KernelSpatial[i]]
		}
		if err := checkPlaces(places, window, strides, inputDilations, kernelDilations, paddings); err != nil {
			return nil, err
		}
		begins, padded := make([]int, spatial+2), slices.Clone(paddings)
		for i, n := range window {
			if takenForGroups(n, places[i], strides[i], inputDilations[i], kernelDilations[i], paddings[i]) {
				padded[i][0], begins[axes.OutputSpatial[i]] = strides[i], 1
			}
		}
		convolve := func(input, kernel *value, channelGroupCount int) (*value, error) {
			all, err := stablehlo.Convolution(input, kernel, strides, padded, inputDilations, kernelDilations,
				axes.InputBatch, axes.InputChannels, axes.InputSpatial,
				axes.KernelInputChannels, axes.KernelOutputChannels, axes.KernelSpatial,
				axes.OutputBatch, axes.OutputChannels, axes.OutputSpatial,
				channelGroupCount, batchGroupCount, types.DotGeneralPrecisionDefault, types.DotGeneralPrecisionDefault)
			if err != nil || !slices.Contains(begins, 1) {
				return all, err
			}
			return stablehlo.Slice(all, begins, dims(all), nil)
		}
		together := func(input, kernel *value) (*value, error) { return convolve(input, kernel, channelGroupCount) }
		t := v[0].Shape().DType
		switch {
		case f.b.tpu && classes[t]&integer != 0 && t.Bits() == 64:
			return nil, fmt.Errorf("elements of type %s, but a TPU convolves integers of 32 bits at most: convert them (graph.ConvertDType)", t)
		case f.b.gpu && classes[t]&complexes != 0:
			return convolveParts(v[0], v[1], together)
		case f.b.gpu && classes[t]&integer != 0:
			if terms := v[1].Shape().Size() / max(1, dims(v[1])[axes.KernelOutputChannels]); terms > mostTerms {
				return nil, fmt.Errorf("elements of type %s and %d products for each output, but a GPU adds up %d integers at most: convert them (graph.ConvertDType)",
					t, terms, mostTerms)
			}
			return f.convolveIntegers(v[0], v[1], together)
		}
		plain := !slices.ContainsFunc(slices.Concat(strides, inputDilations, kernelDilations), func(n int) bool { return n != 1 }) &&
			channelGroupCount == 1 && batchGroupCount == 1 &&
			!slices.ContainsFunc(paddings, func(p [2]int) bool { return p[0] < 0 || p[1] < 0 })
		var convolved *value
		if f.b.cut[v[0]] != nil && axes.InputBatch == 0 && !f.b.tpu && channelGroupCount > 1 && channelGroupCount < dims(v[0])[axes.InputChannels] {
			one := func(input, kernel *value) (*value, error) { return convolve(input, kernel, 1) }
			convolved, err = convolveGroups(v[0], v[1], axes, channelGroupCount, one)
		} else if f.b.cpu && plain && fewTerms(v[0], v[1], axes) {
			convolved, err = f.convolveByTerms(v[0], v[1], paddings)
		} else if f.b.cpu && plain && largeWindow(v[0], v[1], axes, padded) {
			convolved, err = f.convolveByEigen(v[0], v[1], axes, padded, func(input, kernel *value, paddings [][2]int) (*value, error) {
				padded = paddings
				return together(input, kernel)
			})
		} else {
			convolved, err = together(v[0], v[1])
		}
		if err == nil && axes.InputBatch == 0 && axes.OutputBatch == 0 {
			f.b.keepCut(v[0], convolved)
		}
		return convolved, err
	})
}

// takenForGroups reports an axis that XLA's simplifier takes for one of groups if it exchanges input and kernel. It
// then ends the process (check of algebraic_simplifier.cc "Window dimensions do not match RHS shape"). A place
// computed before the others and removed prevents that.
func takenForGroups(window, places, stride, inputDilation, kernelDilation int, padding [2]int) bool {
	return window == inputDilation && stride == window-1 && kernelDilation == 1 && padding == [2]int{} && places != window
}

// XLA's CPU is then faster with a sum of shifted products (docs/maintain/performance.md, "Convolutions of few
// channels").
func fewTerms(input, kernel *value, axes compute.ConvolveAxesConfig) bool {
	n := input.Shape().Rank()
	last := n - 1
	if input.Shape().DType != dtypes.Float32 || n < 3 ||
		axes.InputBatch != 0 || axes.InputChannels != last || axes.OutputBatch != 0 || axes.OutputChannels != last ||
		axes.KernelInputChannels != last-1 || axes.KernelOutputChannels != last {
		return false
	}
	for i := range last - 1 {
		if axes.InputSpatial[i] != i+1 || axes.OutputSpatial[i] != i+1 || axes.KernelSpatial[i] != i {
			return false
		}
	}
	k := dims(kernel)
	channels, outputs := k[last-1], k[last]
	terms := kernel.Shape().Size() / max(1, outputs)
	const most, wide, batch = 36, 32, 32
	return terms > 1 && terms <= most && (outputs < wide || channels == 1 && dims(input)[0] >= batch)
}

// convolveByTerms sums the shifted input times each number of the kernel. XLA would repeat the fused sum in each use;
// dividing it by a 1 that XLA cannot fold prevents that.
func (f *Function) convolveByTerms(input, kernel *value, paddings [][2]int) (*value, error) {
	c := &chain{}
	last := input.Shape().Rank() - 1
	low, high := make([]int, last+1), make([]int, last+1)
	for i, p := range paddings {
		low[i+1], high[i+1] = p[0], p[1]
	}
	zero := c.do(func() (*value, error) { return scalar(f.text, input.Shape().DType, 0) })
	padded := c.do(func() (*value, error) { return stablehlo.Pad(input, zero, low, high, nil) })
	if c.err != nil {
		return nil, c.err
	}
	k, out, kept := dims(kernel), slices.Clone(dims(padded)), make([]int, last)
	for i := range kept {
		kept[i] = i
		if i > 0 {
			out[i] -= k[i-1] - 1
		}
	}
	out[last] = k[last]
	part := func(v *value, from, to []int, axes []int) *value {
		v = c.do(func() (*value, error) { return stablehlo.Slice(v, from, to, nil) })
		of := make([]int, len(axes))
		for i, axis := range axes {
			of[i] = out[axis]
		}
		v = c.do(func() (*value, error) { return reshape(v, of...) })
		return c.do(func() (*value, error) { return stablehlo.BroadcastInDim(v, like(v, out...), axes) })
	}
	var sum *value
	for at := range kernel.Shape().Size() / k[last] {
		place := make([]int, last)
		for i := last - 1; i >= 0; i-- {
			place[i], at = at%k[i], at/k[i]
		}
		from, to := append(append([]int{0}, place[:last-1]...), place[last-1]), slices.Clone(out)
		kernelFrom, kernelTo := append(slices.Clone(place), 0), append(slices.Clone(place), k[last])
		for i := range place {
			kernelTo[i]++
			if i > 0 {
				to[i] += from[i]
			}
		}
		to[last] = from[last] + 1
		term := c.two(stablehlo.Multiply, part(padded, from, to, kept), part(kernel, kernelFrom, kernelTo, []int{last}))
		if sum == nil {
			sum = term
			continue
		}
		sum = c.two(stablehlo.Add, sum, term)
	}
	one := c.do(func() (*value, error) { return scalar(f.text, input.Shape().DType, 1) })
	two := c.do(func() (*value, error) { return scalar(f.text, input.Shape().DType, 2) })
	one = c.choose(f.always(c, kernel), one, two)
	one = c.do(func() (*value, error) { return stablehlo.BroadcastInDim(one, sum.Shape(), nil) })
	return c.two(stablehlo.Divide, sum, one), c.err
}

// largeWindow reports a kernel's gradient that YNNPACK computes in one thread, reading the window (the output's
// gradient) once for each channel and row of the result (docs/maintain/performance.md, "Gradients of kernels").
func largeWindow(input, kernel *value, axes compute.ConvolveAxesConfig, paddings [][2]int) bool {
	const fewPlaces, wide, large, part = 7, 32, 200_000, 4
	if input.Shape().DType != dtypes.Float32 || len(paddings) != 2 {
		return false
	}
	rows, window, columns := dims(input)[axes.InputSpatial[0]], dims(kernel)[axes.KernelSpatial[0]], dims(kernel)[axes.KernelSpatial[1]]
	places := dims(input)[axes.InputSpatial[1]] + paddings[1][0] + paddings[1][1] - columns + 1
	return places <= fewPlaces && dims(kernel)[axes.KernelOutputChannels] >= wide && kernel.Shape().Size() >= large &&
		window <= rows && part*(rows+1-window) <= window &&
		rows*(columns+places-1) > (rows+1)*columns // else XLA exchanges input and kernel, and computes a plain loop
}

// convolveByEigen makes a window that is higher than the input, which YNNPACK does not take, by rows of zeros. An
// infinity or NaN of the input that they meet reaches more numbers of its channel.
func (f *Function) convolveByEigen(
	input, kernel *value, axes compute.ConvolveAxesConfig, paddings [][2]int, convolve func(input, kernel *value, paddings [][2]int) (*value, error),
) (*value, error) {
	c := &chain{}
	zero := c.do(func() (*value, error) { return scalar(f.text, input.Shape().DType, 0) })
	pad := func(v *value, axis int, by [2]int) *value {
		low, high := make([]int, v.Shape().Rank()), make([]int, v.Shape().Rank())
		low[axis], high[axis] = by[0], by[1]
		return c.do(func() (*value, error) { return stablehlo.Pad(v, zero, low, high, nil) })
	}
	more := dims(input)[axes.InputSpatial[0]] + 1 - dims(kernel)[axes.KernelSpatial[0]]
	input, kernel = pad(input, axes.InputSpatial[1], paddings[1]), pad(kernel, axes.KernelSpatial[0], [2]int{0, more})
	return c.do(func() (*value, error) {
		return convolve(input, kernel, [][2]int{{paddings[0][0], paddings[0][1] + more}, {}})
	}), c.err
}

func convolveGroups(input, kernel *value, axes compute.ConvolveAxesConfig, groups int, convolve func(input, kernel *value) (*value, error)) (*value, error) {
	c := &chain{}
	group := func(v *value, axis, i int) *value {
		starts, limits := make([]int, v.Shape().Rank()), slices.Clone(dims(v))
		width := limits[axis] / groups
		starts[axis], limits[axis] = i*width, (i+1)*width
		return c.do(func() (*value, error) { return stablehlo.Slice(v, starts, limits, nil) })
	}
	all := make([]*value, groups)
	for i := range all {
		all[i] = c.two(convolve, group(input, axes.InputChannels, i), group(kernel, axes.KernelOutputChannels, i))
	}
	return c.do(func() (*value, error) { return stablehlo.Concatenate(axes.OutputChannels, all...) }), c.err
}

// cuDNN has only real convolutions.
func convolveParts(input, kernel *value, convolve func(input, kernel *value) (*value, error)) (*value, error) {
	c := &chain{}
	a, b := c.parts(input)
	d, e := c.parts(kernel)
	re := c.two(stablehlo.Subtract, c.two(convolve, a, d), c.two(convolve, b, e))
	im := c.two(stablehlo.Add, c.two(convolve, a, e), c.two(convolve, b, d))
	return c.two(stablehlo.Complex, re, im), c.err
}

// digitBits is the number of bits per float64 convolution. Sums stay exact: 2^(2·digitBits)·mostTerms is 2^53.
const (
	digitBits = 16
	mostTerms = 1 << 21
)

// cuDNN has few integer convolutions: digits are convolved in float64. Overflow wraps around.
func (f *Function) convolveIntegers(input, kernel *value, convolve func(input, kernel *value) (*value, error)) (*value, error) {
	t := input.Shape().DType
	c := &chain{}
	digit := func(v *value, i int) *value {
		v = c.convert(v, dtypes.Uint64)
		v = c.two(stablehlo.ShiftRightLogical, v, f.like(c, v, digitBits*i))
		return c.convert(c.two(stablehlo.And, v, f.like(c, v, 1<<min(digitBits, t.Bits())-1)), dtypes.Float64)
	}
	var sum *value
	for i := 0; i*digitBits < t.Bits(); i++ {
		for j := 0; (i+j)*digitBits < t.Bits(); j++ {
			term := c.convert(c.two(convolve, digit(input, i), digit(kernel, j)), dtypes.Uint64)
			term = c.do(func() (*value, error) {
				return stablehlo.ShiftLeft(term, f.like(c, term, digitBits*(i+j)))
			})
			if sum == nil {
				sum = term
			} else {
				sum = c.two(stablehlo.Add, sum, term)
			}
			if c.err != nil {
				return nil, c.err
			}
		}
	}
	return c.convert(sum, t), c.err
}
