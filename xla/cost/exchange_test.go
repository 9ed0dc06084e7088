package cost

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCount_exchanged(t *testing.T) {
	mesh := []Axis{{"data", 2}, {"model", 4}}
	p0, p1 := "%x = f32[64,32]{1,0} parameter(0)", "%h = bf16[64,32]{1,0} parameter(1)"
	for _, tt := range []struct {
		lines []string
		want  Exchange
	}{
		{[]string{p0, "%s = f32[64,32]{1,0} all-reduce-start(%x), channel_id=1, replica_groups=[2,4]<=[8], to_apply=%sum", "ROOT %d = f32[64,32]{1,0} all-reduce-done(%s)"},
			Exchange{"all-reduce", "model", 4, 8192, 1.5 * 8192}},
		{[]string{p0, p1, "ROOT %s = (f32[64,32]{1,0}, bf16[64,32]{1,0}) all-reduce(%x, %h), channel_id=1, replica_groups={{0,4},{1,5},{2,6},{3,7}}, to_apply=%sum"},
			Exchange{"all-reduce", "data", 2, 12288, 12288}},
		{[]string{p0, "ROOT %s = f32[16,32]{1,0} reduce-scatter(%x), channel_id=1, replica_groups=[2,4]<=[8], dimensions={0}, to_apply=%sum"},
			Exchange{"reduce-scatter", "model", 4, 8192, 6144}},
		{[]string{p0, "%s = (f32[64,32]{1,0}, f32[128,32]{1,0}) all-gather-start(%x), channel_id=1, replica_groups=[4,2]<=[2,4]T(1,0), dimensions={0}", "ROOT %d = f32[128,32]{1,0} all-gather-done(%s)"},
			Exchange{"all-gather", "data", 2, 8192, 8192}},
		{[]string{p0, "ROOT %s = f32[64,32]{1,0} all-to-all(%x), channel_id=1, replica_groups=mesh['a'=2,'b'=4] {'a','b'}, dimensions={0}"},
			Exchange{"all-to-all", "data,model", 8, 8192, 7168}},
		{[]string{p0, "ROOT %s = f32[64,32]{1,0} all-gather(%x), channel_id=1, replica_groups=mesh['a'=2,'b'=4] {'b'}, dimensions={0}"},
			Exchange{"all-gather", "model", 4, 8192, 3 * 8192}},
		{[]string{p0, "ROOT %s = f32[64,32]{1,0} all-gather(%x), channel_id=1, replica_groups=mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'b'}, dimensions={0}"},
			Exchange{"all-gather", "data", 2, 8192, 8192}},
		{[]string{p0, "ROOT %s = f32[64,32]{1,0} all-gather(%x), channel_id=1, replica_groups=mesh['a'=4,'b'=2], device_ids=(0,4,1,5,2,6,3,7) {'a'}, dimensions={0}"},
			Exchange{"all-gather", "model", 4, 8192, 3 * 8192}},
		{[]string{p0, "ROOT %s = f32[64,32]{1,0} collective-permute(%x), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}"},
			Exchange{"collective-permute", "model", 2, 8192, 8192}},
		{[]string{p0, "ROOT %s = f32[64,32]{1,0} all-reduce(%x), channel_id=1, replica_groups={}, to_apply=%sum"},
			Exchange{"all-reduce", "data,model", 8, 8192, 2 * 7 * 1024}},
		{[]string{p0, "ROOT %s = f32[64,32]{1,0} all-reduce(%x), channel_id=1, replica_groups={{0,1},{2,3},{4,5},{6,7}}, to_apply=%sum"},
			Exchange{"all-reduce", "", 2, 8192, 8192}},
	} {
		require.Equal(t, []Exchange{tt.want}, counted(t, program(tt.lines...), mesh...).Exchanged, "%v", tt.lines)
	}

	// An asynchronous computation counts where it starts.
	c := counted(t, strings.Replace(program(p0,
		"%s = ((f32[64,32]{1,0}), f32[16,32]{1,0}, u32[]) async-start(%x), calls=%wrapped", "%u = ((f32[64,32]{1,0}), f32[16,32]{1,0}, u32[]) async-update(%s)",
		"ROOT %d = f32[16,32]{1,0} async-done(%u)"), "ENTRY", `%wrapped (w: f32[64,32]) -> f32[16,32] {
  %w = f32[64,32]{1,0} parameter(0)
  ROOT %rs = f32[16,32]{1,0} reduce-scatter(%w), channel_id=3, replica_groups=[2,4]<=[8], dimensions={0}, to_apply=%sum
}

ENTRY`, 1), mesh...)
	require.Equal(t, []Exchange{{"reduce-scatter", "model", 4, 8192, 6144}}, c.Exchanged)
}
