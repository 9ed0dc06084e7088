package losses_test

import (
	"fmt"

	"github.com/lazo-ml/lazo/losses"
)

func ExampleNamed() {
	_, err := losses.Named("hubert")
	fmt.Println(err)
	// Output:
	// loss "hubert": unknown name; did you mean "huber"?
	//   known: binary_crossentropy, binary_focal_crossentropy, categorical_crossentropy, categorical_focal_crossentropy, categorical_hinge, cosine_similarity, dice, hinge, huber, kl_divergence, log_cosh, mae, mape, masked_sparse_categorical_crossentropy, mean_absolute_error, mean_absolute_percentage_error, mean_squared_error, mean_squared_logarithmic_error, mse, msle, poisson, sparse_categorical_crossentropy, squared_hinge, tversky
}
