package cost

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The pairs are those of a loop over all places, also with strides, dilations and negative padding.
func TestPositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, low, high int) int { return rapid.IntRange(low, high).Draw(t, name) }
		a := windowAxis{
			size: draw("size", 1, 4), stride: draw("stride", 1, 3), low: draw("low", -2, 3),
			windowDilation: draw("window dilation", 1, 3), baseDilation: draw("base dilation", 1, 3),
		}
		base, output := draw("base", 1, 7), draw("output", 1, 7)
		want := 0.0
		for o := range output {
			for k := range a.size {
				for b := range base {
					if o*a.stride+k*a.windowDilation-a.low == b*a.baseDilation {
						want++
					}
				}
			}
		}
		got, err := a.positions(base, output)
		if err != nil || got != want {
			t.Fatalf("%+v of %d to %d: got %g, %v, expected %g", a, base, output, got, err, want)
		}
	})
}

func TestWindow(t *testing.T) {
	axes, err := window("{size=3x2 stride=2x1 pad=1_2x-1_0 lhs_dilate=1x2 rhs_dilate=3x1 rhs_reversal=1x1}")
	require.NoError(t, err)
	require.Equal(t, []windowAxis{{3, 2, 1, 2, 3, 1}, {2, 1, -1, 0, 1, 2}}, axes)
	axes, err = window(" {} ")
	require.NoError(t, err)
	require.Empty(t, axes)
	for text, want := range map[string]string{
		"size=3x3 stride=2": "stride has 1 axes, expected 2", "size=x": "window {size=x}", "size=-1": "size=-1", "size=3 pad=1": `padding "1"`,
	} {
		_, err := window(text)
		require.ErrorContains(t, err, want, text)
	}
	l, err := dimLabels("b01f_01io->b01f")
	require.NoError(t, err)
	require.Equal(t, labels{map[byte]int{'b': 0, '0': 1, '1': 2, 'f': 3}, map[byte]int{'0': 0, '1': 1, 'i': 2, 'o': 3}, map[byte]int{'b': 0, '0': 1, '1': 2, 'f': 3}}, l)
	for _, text := range []string{"", "b0f->b0f", "b0_0io->b0f", "b0f_0i->b0f", "b0f_0io->0f"} {
		_, err := dimLabels(text)
		require.ErrorContains(t, err, "dim_labels="+text)
	}
}
