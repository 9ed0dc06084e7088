package checkpoint_test

import (
	"fmt"
	"log"

	"github.com/lazo-ml/lazo/checkpoint"
)

// A folder of GoMLX's checkpoints; a managed.State takes its variables by Transfer.
func ExampleImportGoMLX() {
	c, err := checkpoint.ImportGoMLX("testdata/gomlx-v0.26.0/gzip", 0)
	if err != nil {
		log.Fatal(err)
	}
	weights, _ := c.Tensor("/dense/weights")
	var params checkpoint.Params
	if err := c.Section("params", &params); err != nil {
		log.Fatal(err)
	}
	fmt.Println("step", c.Step, weights.DType, weights.Dims, params["/made/int64"])
	// Output: step 1200 F32 [2 3] 9007199254740993
}
