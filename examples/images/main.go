// Command images trains a convolutional network with augmentation on a folder of images, one subfolder per class, or on
// the digits, and classifies one image: go run ./examples/images -dir FOLDER
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/images"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

func main() {
	must.M = loop.Exit
	ctx := context.Background()
	dir := flag.String("dir", "", "a folder with a folder of PNG or JPEG images for each class")
	size := flag.Int("size", 8, "the height and width that images get")
	epochs := flag.Int("epochs", 10, "how often to go over the images")
	seed := flag.Int64("seed", 0, "of the initial parameters and of the order of the data")
	flag.Parse()
	if *dir == "" {
		*dir = must.M1(writeDigits())
	}
	set := must.M1(images.Open(*dir, images.Format{Height: *size, Width: *size, Channels: 1, Resize: images.CropCentre}))
	training, test := must.M2(set.Split(0.8, 0, data.Stratified("y")))
	model := must.M1(flaxlike.New(ctx, nn.Sequential{
		nn.Conv{Channels: 16, Window: []int{3}}, nn.BatchNorm{}, nn.Activation("relu"), nn.MaxPool{Window: 2},
		nn.Conv{Channels: 32, Window: []int{3}}, nn.BatchNorm{}, nn.Activation("relu"), nn.MaxPool{Window: 2},
		nn.Flatten{}, nn.Dropout{Rate: 0.3}, nn.Dense{Units: len(set.Classes("y"))}},
		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"),
		flaxlike.WithSeed(*seed), flaxlike.InstallIfMissing(func(line string) { log.Print(line) })))
	defer model.Close()
	augment := images.Augment(uint64(*seed), "x", images.RandomRotation(10), images.RandomZoom(0.1))
	must.M1(model.Fit(ctx, training, flaxlike.Fit{Epochs: *epochs, Validation: test, Augment: []func(data.Batch) (data.Batch, error){augment}}))
	fmt.Printf("test accuracy: %.3f\n", must.M1(model.Evaluate(ctx, test))["accuracy"])
	first := must.M1(model.Predict(ctx, must.M1(test.Slice(0, 1))))
	fmt.Println("the first test image shows", must.M1(first.Labels())[0][0])
}
