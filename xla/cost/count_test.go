package cost

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func counted(t *testing.T, text string, mesh ...Axis) *Counts {
	t.Helper()
	c, err := Count(text, mesh)
	require.NoError(t, err)
	return c
}

func fixture(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return string(text)
}

// program is a module with one computation of these lines.
func program(lines ...string) string {
	return "HloModule m, is_scheduled=true, num_partitions=8\n\n" + sum + "ENTRY %main (p0: f32[64,32]) -> f32[64,32] {\n  " + strings.Join(lines, "\n  ") + "\n}\n"
}

const sum = `%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

`

// looped is a loop over a product, with a condition and a counter.
func looped(attributes, condition, step, start string) string {
	return `HloModule m, num_partitions=4

` + sum + `%inner_body (b: (s32[], f32[8,8])) -> (s32[], f32[8,8]) {
  %b = (s32[], f32[8,8]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%b), index=0
  %x = f32[8,8]{1,0} get-tuple-element(%b), index=1
  %one = s32[] constant(` + step + `)
  %next = s32[] add(%i, %one)
  %y = f32[8,8]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %r = f32[8,8]{1,0} all-reduce(%y), channel_id=1, replica_groups=[1,4]<=[4], to_apply=%sum
  ROOT %t = (s32[], f32[8,8]{1,0}) tuple(%next, %r)
}

%inner_condition (c: (s32[], f32[8,8])) -> pred[] {
  %c = (s32[], f32[8,8]{1,0}) parameter(0)
  %i.1 = s32[] get-tuple-element(%c), index=0
  %n = s32[] constant(7)
  ROOT %more = pred[] compare(` + condition + `
}

ENTRY %main (p: f32[8,8], m: s32[]) -> f32[8,8] {
  %p = f32[8,8]{1,0} parameter(0)
  %m = s32[] parameter(1)
  %zero = s32[] constant(0)
  %init = (s32[], f32[8,8]{1,0}) tuple(` + start + `, %p)
  %loop = (s32[], f32[8,8]{1,0}) while(%init), condition=%inner_condition, body=%inner_body` + attributes + `
  ROOT %out = f32[8,8]{1,0} get-tuple-element(%loop), index=1
}
`
}
