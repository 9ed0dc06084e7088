package cost

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const fused = `%slices (a: f32[1000], i: s32[], u: f32[10]) -> (f32[10], f32[1000]) {
  %a = f32[1000]{0} parameter(0)
  %i = s32[] parameter(1)
  %u = f32[10]{0} parameter(2)
  %part = f32[10]{0} dynamic-slice(%a, %i), dynamic_slice_sizes={10}
  %put = f32[1000]{0} dynamic-update-slice(%a, %u, %i)
  ROOT %both = (f32[10]{0}, f32[1000]{0}) tuple(%part, %put)
}

`

// An operation that takes a part reads the part, and one in place writes the part.
func TestTraffic(t *testing.T) {
	const a, i, u = "%a = f32[1000]{0} parameter(0)", "%i = s32[] parameter(1)", "%u = f32[10]{0} parameter(2)"
	for line, want := range map[string]float64{
		"f32[1000]{0} negate(%a)":                                                  4 * 2000,
		"f32[10]{0} dynamic-slice(%a, %i), dynamic_slice_sizes={10}":               4 * (10 + 10 + 1),
		"f32[10]{0} slice(%a), slice={[5:15]}":                                     4 * 20,
		"f32[1000]{0} dynamic-update-slice(%a, %u, %i)":                            4 * 20,
		"f32[1000]{0:S(1)} negate(%a)":                                             4 * 1000, // not into device memory
		"(f32[10]{0}, f32[1000]{0}) fusion(%a, %i, %u), kind=kLoop, calls=%slices": 4 * (10 + 1 + 10 + 10 + 10),
	} {
		text := "HloModule m\n\n" + fused + "ENTRY %main (a: f32[1000], i: s32[], u: f32[10]) -> f32[] {\n  " + a + "\n  " + i + "\n  " + u + "\n  ROOT %r = " + line + "\n}\n"
		require.Equal(t, want, counted(t, text).Bytes, line)
	}
}
