package cost

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

type windowAxis struct {
	size, stride                 int
	low, high                    int // padding, possibly negative
	windowDilation, baseDilation int
}

// window parses "size=3x3 stride=2x2 pad=1_1x1_1 lhs_dilate=2x2 rhs_dilate=1x1 rhs_reversal=1x1". Reversals do not
// change counts.
func window(text string) ([]windowAxis, error) {
	text = strings.Trim(text, "{} ")
	if text == "" {
		return nil, nil
	}
	var axes []windowAxis
	for field := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(field, "=")
		parts := strings.Split(value, "x")
		if axes == nil {
			for range parts {
				axes = append(axes, windowAxis{size: 1, stride: 1, windowDilation: 1, baseDilation: 1})
			}
		}
		if len(parts) != len(axes) {
			return nil, fmt.Errorf("window {%s}: %s has %d axes, expected %d", text, key, len(parts), len(axes))
		}
		for i, p := range parts {
			a := &axes[i]
			if key == "pad" {
				low, high, found := strings.Cut(p, "_")
				var err, err2 error
				a.low, err = strconv.Atoi(low)
				a.high, err2 = strconv.Atoi(high)
				if !found || err != nil || err2 != nil {
					return nil, fmt.Errorf("window {%s}: padding %q", text, p)
				}
				continue
			}
			n, err := strconv.Atoi(p)
			if err != nil || n < 0 || n > 1<<40 {
				return nil, fmt.Errorf("window {%s}: %s", text, field)
			}
			switch key {
			case "size":
				a.size = n
			case "stride":
				a.stride = max(n, 1)
			case "lhs_dilate":
				a.baseDilation = max(n, 1)
			case "rhs_dilate":
				a.windowDilation = max(n, 1)
			}
		}
	}
	return axes, nil
}

func windowSize(i *instruction) (float64, error) {
	axes, err := window(i.attributes["window"])
	if err != nil {
		return 0, fmt.Errorf("instruction %q (line %d): %w", i.name, i.line, err)
	}
	size := 1.0
	for _, a := range axes {
		size *= float64(a.size)
	}
	return size, nil
}

const maxPositions = 1 << 28

// pairs of output and window position on an element of the base
func (a windowAxis) positions(base, output int) (float64, error) {
	if float64(a.size)*float64(output) <= 0 || base <= 0 {
		return 0, nil
	}
	dilated := (base-1)*a.baseDilation + 1
	var count float64
	if a.baseDilation == 1 {
		if a.size > maxPositions {
			return 0, fmt.Errorf("a window of %d", a.size)
		}
		for k := range a.size {
			// Output o meets element o*stride + shift.
			shift := k*a.windowDilation - a.low
			first := 0
			if shift < 0 {
				first = (-shift + a.stride - 1) / a.stride
			}
			if shift >= dilated {
				continue
			}
			last := min(output-1, (dilated-1-shift)/a.stride)
			count += float64(max(0, last-first+1))
		}
		return count, nil
	}
	if float64(a.size)*float64(output) > maxPositions {
		return 0, fmt.Errorf("a dilated window of %d at %d places", a.size, output)
	}
	for k := range a.size {
		for o := range output {
			at := o*a.stride + k*a.windowDilation - a.low
			if at >= 0 && at < dilated && at%a.baseDilation == 0 {
				count++
			}
		}
	}
	return count, nil
}

type labels struct{ input, kernel, output map[byte]int }

// dimLabels parses "b01f_01io->b01f".
func dimLabels(text string) (l labels, err error) {
	operands, output, found := strings.Cut(text, "->")
	input, kernel, both := strings.Cut(operands, "_")
	if !found || !both {
		return l, fmt.Errorf("dim_labels=%s", text)
	}
	read := func(text string) map[byte]int {
		places := map[byte]int{}
		for i := range len(text) {
			if text[i] != '?' {
				places[text[i]] = i
			}
		}
		return places
	}
	l = labels{read(input), read(kernel), read(output)}
	for _, missing := range []bool{!has(l.input, "bf"), !has(l.kernel, "io"), !has(l.output, "bf")} {
		if missing {
			return l, fmt.Errorf("dim_labels=%s", text)
		}
	}
	return l, nil
}

func has(places map[byte]int, names string) bool {
	for i := range len(names) {
		if _, found := places[names[i]]; !found {
			return false
		}
	}
	return true
}

// 2 FLOPs per product of a kernel and an input element
func convolution(i *instruction, input, kernel, output shape) (float64, error) {
	l, err := dimLabels(i.attributes["dim_labels"])
	if err != nil {
		return 0, err
	}
	axes, err := window(i.attributes["window"])
	if err != nil {
		return 0, err
	}
	n := len(axes)
	if len(input.dims) < n+2 || len(kernel.dims) < n+2 || len(output.dims) < n+2 || n > 10 {
		return 0, errors.New("a convolution of arrays with too few axes for its window")
	}
	groups := func(key string) (float64, error) {
		text, found := i.attributes[key]
		if !found {
			return 1, nil
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return 0, fmt.Errorf("%s=%s", key, text)
		}
		return float64(n), nil
	}
	batches, err := groups("batch_group_count")
	if err != nil {
		return 0, err
	}
	if _, err := groups("feature_group_count"); err != nil {
		return 0, err
	}
	size := func(s shape, places map[byte]int, name byte) float64 {
		at, found := places[name]
		if !found || at >= len(s.dims) {
			return 0
		}
		return float64(s.dims[at])
	}
	// input features of one group
	products := size(kernel, l.kernel, 'i') * size(output, l.output, 'f') * size(input, l.input, 'b') / batches
	for k, a := range axes {
		name := byte('0' + k)
		if !has(l.input, string(name)) || !has(l.output, string(name)) {
			return 0, fmt.Errorf("dim_labels=%s of a window with %d axes", i.attributes["dim_labels"], n)
		}
		count, err := a.positions(int(size(input, l.input, name)), int(size(output, l.output, name)))
		if err != nil {
			return 0, err
		}
		products *= count
	}
	return 2 * products, nil
}
