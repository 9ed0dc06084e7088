package losses_test

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/xla"
)

// The loss of each of three examples, and the mean of the two that a mask counts. In a step, Builder.Loss takes the
// values of the examples.
func ExampleCrossEntropy() {
	runtime, err := xla.Open(context.Background(), xla.Go)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer runtime.Close()
	each, mean, err := graph.MustNewExec(runtime, func(labels, logits, mask *graph.Node) (each, mean *graph.Node) {
		each = losses.CrossEntropy(labels, logits)
		return each, losses.MaskedMean(each, mask)
	}).Call2([]int32{0, 1, 1}, [][]float32{{2, 0}, {2, 0}, {0, 0}}, []bool{true, true, false})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.3f\n%.3f\n", each.Value(), mean.Value())
	// Output:
	// [0.127 2.127 0.693]
	// 1.127
}

func ExampleNamed() {
	_, err := losses.Named("hubert")
	fmt.Println(err)
	// Output:
	// loss "hubert": unknown name; did you mean "huber"?
	//   known: binary_crossentropy, binary_focal_crossentropy, categorical_crossentropy, categorical_focal_crossentropy, categorical_hinge, cosine_similarity, ctc, dice, hinge, huber, kl_divergence, log_cosh, mae, mape, masked_sparse_categorical_crossentropy, mean_absolute_error, mean_absolute_percentage_error, mean_squared_error, mean_squared_logarithmic_error, mse, msle, poisson, sparse_categorical_crossentropy, squared_hinge, tversky
}
