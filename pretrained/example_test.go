package pretrained_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/pretrained"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A classifier with a new head is fine-tuned and saved for transformers.
func Example() {
	ctx := context.Background()
	base, err := pretrained.Open(ctx, "testdata/distilbert")
	check(err)
	network := base.Classifier(2)
	network.Labels = []string{"negative", "positive"}
	fmt.Println(network.Drawn())
	model, err := flaxlike.New(ctx, network, flaxlike.WithLoss("sparse_categorical_crossentropy"))
	check(err)
	defer model.Close()

	set, err := data.New(data.Named("input_ids", []int32{2, 17, 3, 0, 2, 30, 31, 3}, 2, 4), data.Named("attention_mask", []int32{1, 1, 1, 0, 1, 1, 1, 1}, 2, 4),
		data.Y([]int32{0, 1}, 2))
	check(err)
	_, err = model.Fit(ctx, set, flaxlike.Fit{Epochs: 2, Output: io.Discard})
	check(err)
	dir, err := os.MkdirTemp("", "tuned")
	check(err)
	defer os.RemoveAll(dir)
	check(network.Save(dir, model))
	again, err := pretrained.Open(ctx, dir)
	check(err)
	fmt.Println(again.Classifier(0).Labels, again.Classifier(0).Drawn())
	// Output:
	// [/model/classifier/kernel /model/classifier/bias]
	// [negative positive] []
}
