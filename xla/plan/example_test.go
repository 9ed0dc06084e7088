package plan_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/export"
	"github.com/lazo-ml/lazo/xla/plan"
)

// A layer whose gradient the devices of a mesh add up, as XLA writes it.
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
	counts, err := plan.Count(hlo, []plan.Axis{{Name: "data", Size: 8}})
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

// A step that [managed.Stepper.Export] wrote, on four TPUs and on eight GPUs that need not be there. It needs their
// compilers: lazo install tpu, lazo install cuda_compile.
func ExampleStep_For() {
	program, err := export.Load("exported/train")
	if err != nil {
		fmt.Println(err)
		return
	}
	step, err := plan.StepOf(program, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"v5e:2x2", "h100:8"} {
		target, err := plan.ParseTarget(name)
		if err != nil {
			fmt.Println(err)
			return
		}
		report, err := step.For(context.Background(), target, xla.CompileTimeout(5*time.Minute))
		switch {
		case errors.Is(err, xla.ErrUneven):
			fmt.Println("a batch that the devices do not divide:", err)
		case err != nil:
			fmt.Println(err)
		case !report.Fit.Fits:
			fmt.Printf("%s: %s of memory are missing\n", name, plan.Bytes(float64(report.Fit.Over())))
		default:
			if err := report.WriteTable(os.Stdout); err != nil {
				fmt.Println(err)
			}
		}
	}
}
