package cost

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCount_loops(t *testing.T) {
	const product, bytes = 2 * 8 * 8 * 8, 4 * 8 * 8
	const less = "%i.1, %n), direction=LT"
	known := `, backend_config={"known_trip_count":{"n":"5"}}`
	for name, tt := range map[string]struct {
		text  string
		trips float64
	}{
		"said":              {looped(known, less, "1", "%zero"), 5},
		"counted":           {looped("", less, "1", "%zero"), 7},
		"by two":            {looped("", less, "2", "%zero"), 4},
		"up to and with":    {looped("", "%i.1, %n), direction=LE", "1", "%zero"), 8},
		"the other way":     {looped("", "%n, %i.1), direction=GT", "1", "%zero"), 7},
		"from an argument":  {looped("", less, "1", "%m"), 0},
		"another condition": {looped("", "%i.1, %n), direction=NE", "1", "%zero"), 0},
		"going nowhere":     {looped("", less, "0", "%zero"), 0},
	} {
		c := counted(t, tt.text, Axis{"data", 4})
		trips := tt.trips
		if trips == 0 {
			trips = 1 // and reported
			require.Equal(t, []string{"loop"}, c.Unknown, name)
		} else {
			require.Empty(t, c.Unknown, name)
		}
		require.Equal(t, trips*product, c.Matrix["f32"], name)
		require.Equal(t, []Exchange{{"all-reduce", "data", 4, trips * bytes, 1.5 * trips * bytes}}, c.Exchanged, name)
	}

	// A nested loop: 3 times 7.
	outer := strings.Replace(looped("", less, "1", "%zero"), "ENTRY %main (p: f32[8,8], m: s32[]) -> f32[8,8] {\n  %p = f32[8,8]{1,0} parameter(0)\n  %m = s32[] parameter(1)",
		"%outer_body (o: (f32[8,8])) -> (f32[8,8]) {\n  %o = (f32[8,8]{1,0}) parameter(0)\n  %p = f32[8,8]{1,0} get-tuple-element(%o), index=0", 1)
	outer = strings.Replace(outer, "  ROOT %out = f32[8,8]{1,0} get-tuple-element(%loop), index=1\n}", `  %out = f32[8,8]{1,0} get-tuple-element(%loop), index=1
  ROOT %made = (f32[8,8]{1,0}) tuple(%out)
}

%outer_condition (q: (f32[8,8])) -> pred[] {
  %q = (f32[8,8]{1,0}) parameter(0)
  ROOT %yes = pred[] constant(true)
}

ENTRY %main (v: f32[8,8]) -> (f32[8,8]) {
  %v = f32[8,8]{1,0} parameter(0)
  %first = (f32[8,8]{1,0}) tuple(%v)
  ROOT %all = (f32[8,8]{1,0}) while(%first), condition=%outer_condition, body=%outer_body, backend_config={"known_trip_count":{"n":"3"}}
}`, 1)
	require.Equal(t, 21.0*product, counted(t, outer).Matrix["f32"])

	// XLA counts 8,454,146 FLOPs and 16,384 transcendentals for this program, whose loop runs 7 times.
	c := counted(t, fixture(t, "tpu-loop.hlo"))
	require.Equal(t, map[string]float64{"f32": 7 * 2 * 64 * 256 * 256}, c.Matrix)
	require.Equal(t, 7.0*16_384, c.Transcendentals)
	require.Empty(t, counted(t, fixture(t, "cpu-loops.hlo")).Unknown)
}
