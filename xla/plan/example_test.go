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

// A step that [managed.Stepper.Export] wrote, on four TPUs and on eight GPUs that need not be present. It needs their
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
			fmt.Printf("%s: %d bytes of memory are missing\n", name, report.Fit.Over())
		default:
			if err := report.WriteTable(os.Stdout); err != nil {
				fmt.Println(err)
			}
		}
	}
}
