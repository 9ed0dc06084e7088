package images_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/images"
)

func ExampleRead() {
	picture := image.NewGray(image.Rect(0, 0, 2, 1))
	picture.SetGray(1, 0, color.Gray{255})
	var file bytes.Buffer
	if err := png.Encode(&file, picture); err != nil {
		log.Fatal(err)
	}
	a, err := images.Read(bytes.NewReader(file.Bytes()), images.Format{Height: 1, Width: 2, Channels: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.Dims, a.Flat)

	set, err := data.New(data.X(a.Flat, 1, 1, 2, 1))
	if err != nil {
		log.Fatal(err)
	}
	shift := images.Augment(0, "x", images.RandomShift(0, 1))
	for batch, err := range data.Map(set.Batches(1).All(), shift) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(batch.Fields[0].Array.Dims)
	}
	// Output:
	// [1 2 1] [0 1]
	// [1 1 2 1]
}
