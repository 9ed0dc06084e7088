package hlo_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// A builder passes its module to a function that compiles it. Here that function prints the text.
func ExampleNew() {
	printed := errors.New("printed, not compiled")
	b := hlo.New("double", func(m *hlo.Module) (compute.Executable, error) {
		fmt.Println(m.Text())
		return nil, printed
	})
	x, err := b.Main().Parameter("x", shapes.Make(dtypes.Float32, 2), nil)
	if err != nil {
		log.Fatal(err)
	}
	sum, err := b.Main().Add(x, x)
	if err != nil {
		log.Fatal(err)
	}
	if err := b.Main().Return([]compute.Value{sum}, nil); err != nil {
		log.Fatal(err)
	}
	if _, err := b.Compile(); !errors.Is(err, printed) {
		log.Fatal(err)
	}
	// Output:
	// module @double {
	//   func.func public @main(%p0: tensor<2xf32>) -> (tensor<2xf32>) {
	//     %0 = "stablehlo.add"(%p0, %p0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
	//     return %0 : tensor<2xf32>
	//   }
	// }
}
