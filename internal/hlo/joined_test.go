package hlo_test

import (
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

// A sum of zero-padded arrays becomes a concatenation if the arrays do not overlap. The numbers are equal.
func TestAdd_padded(t *testing.T) {
	type pad = compute.PadAxis
	on := func(axis, start, end int) []pad {
		list := make([]pad, 2)
		list[axis] = pad{Start: start, End: end}
		return list
	}
	cases := []struct {
		name   string
		fill   float32
		pads   [][]pad
		joined bool
		want   []float32
	}{
		{"gates", 0, [][]pad{on(1, 4, 0), on(1, 0, 4), on(1, 2, 2)}, true, []float32{2, 4, 3, 6, 1, 2, 6, 8, 9, 12, 3, 4}},
		{"with gaps", 0, [][]pad{on(1, 5, 1), on(1, 1, 5)}, true, []float32{0, 2, 4, 0, 0, 1, 2, 0, 0, 6, 8, 0, 0, 3, 4, 0}},
		{"rows", 0, [][]pad{on(0, 0, 2), on(0, 2, 0)}, true, []float32{1, 2, 3, 4, 2, 4, 6, 8}},
		{"overlapping", 0, [][]pad{on(1, 1, 1), on(1, 2, 0)}, false, []float32{0, 1, 4, 4, 0, 3, 10, 8}},
		{"two axes", 0, [][]pad{on(1, 0, 0), {{}, {Start: 1, End: -1}}}, false, []float32{1, 4, 3, 10}},
		{"one of each axis", 0, [][]pad{{{Start: 0, End: 2}, {Start: 2}}, {{Start: 2, End: 0}, {End: 2}}}, false,
			[]float32{0, 0, 1, 2, 0, 0, 3, 4, 2, 4, 0, 0, 6, 8, 0, 0}},
		{"with 1", 1, [][]pad{on(1, 2, 0), on(1, 0, 2)}, false, []float32{3, 5, 2, 3, 7, 9, 4, 5}},
	}
	sum := func(i int) builds {
		return func(f compute.Function, in []compute.Value) ([]compute.Value, error) {
			do := must1(t)
			fill := do(f.Constant([]float32{cases[i].fill}))
			var total, x compute.Value
			for _, p := range cases[i].pads {
				if x == nil {
					x = in[0]
				} else {
					x = do(f.Add(x, in[0]))
				}
				if padded := do(f.Pad(x, fill, p...)); total == nil {
					total = padded
				} else {
					total = do(f.Add(total, padded))
				}
			}
			return []compute.Value{total}, nil
		}
	}
	for i, c := range cases {
		var text string
		b := programOf(hlo.New("padded", func(m *hlo.Module) (compute.Executable, error) {
			text = m.Text()
			return &executable{module: m}, nil
		}))
		x, err := b.Parameter("x", shapes.Make(dtypes.Float32, 2, 2), nil)
		require.NoError(t, err)
		outputs, err := sum(i)(b.Function, []compute.Value{x})
		require.NoError(t, err)
		_, err = b.Finish(outputs)
		require.NoError(t, err)
		require.Equal(t, c.joined, !strings.Contains(text, "stablehlo.pad"), "%s: %s", c.name, text)
	}
	got, err := run(plugintest.CPU(t), []array{of([]int{2, 2}, float32(1), 2, 3, 4)}, func(f compute.Function, in []compute.Value) (all []compute.Value, err error) {
		for i := range cases {
			outputs, err := sum(i)(f, in)
			if err != nil {
				return nil, err
			}
			all = append(all, outputs...)
		}
		return all, nil
	})
	require.NoError(t, err)
	for i, c := range cases {
		require.Equal(t, c.want, got[i].flat, c.name)
	}
}
