package cost_test

import (
	"fmt"

	"github.com/lazo-ml/lazo/xla/cost"
)

// A layer in XLA's HLO, with a gradient that is summed over the devices of a mesh.
func ExampleCount() {
	const hlo = `HloModule step, is_scheduled=true, num_partitions=8

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main (x: f32[16,512], dy: f32[16,128]) -> f32[512,128] {
  %x = f32[16,512]{1,0} parameter(0)
  %dy = f32[16,128]{1,0} parameter(1)
  %dw = f32[512,128]{1,0} dot(%x, %dy), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT %all = f32[512,128]{1,0} all-reduce(%dw), channel_id=1, replica_groups=[1,8]<=[8], to_apply=%add
}
`
	counts, err := cost.Count(hlo, []cost.Axis{{Name: "data", Size: 8}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.0f FLOPs in products on each device\n", counts.Matrix["f32"])
	for _, e := range counts.Exchanged {
		fmt.Printf("%s over %s: %.0f bytes, of which a device sends %.0f\n", e.Kind, e.Axes, e.Bytes, e.Sent)
	}
	// Output:
	// 2097152 FLOPs in products on each device
	// all-reduce over data: 262144 bytes, of which a device sends 458752
}
