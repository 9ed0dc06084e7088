package data_test

import (
	"fmt"
	"log"

	"github.com/lazo-ml/lazo/data"
)

func ExampleNew() {
	set, err := data.New(
		data.X([]float32{0, 0, 0, 1, 1, 0, 1, 1}, 4, 2),
		data.Y([]int32{0, 1, 1, 0}, 4))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(set.Len(), "examples")

	_, err = data.New(data.X([]float32{1, 2, 3}, 2, 2))
	fmt.Println(err)
	// Output:
	// 4 examples
	// data: field "x": dims [2 2] mean 4 elements, but Flat has 3
}

func ExampleSet_Batches() {
	set, err := data.New(data.X([]float32{0, 1, 2, 3, 4}, 5))
	if err != nil {
		log.Fatal(err)
	}
	for batch, err := range set.Batches(2, data.Shuffle(1), data.Kept).From(0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(batch.Epoch, batch.Fields[0].Array.Flat)
		if epoch, last, _ := batch.InEpoch(); last && epoch == 1 {
			break
		}
	}
	// Output:
	// 0 [3 0]
	// 0 [2 4]
	// 0 [1]
	// 1 [1 4]
	// 1 [2 3]
	// 1 [0]
}

func ExampleDigits() {
	train, test, err := data.Digits()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(train.Len(), test.Len())
	for _, f := range test.Fields() {
		fmt.Println(f.Name, f.Array.DType(), f.Array.Dims)
	}
	// Output:
	// 1437 360
	// x float32 [360 8 8 1]
	// y int32 [360]
}

func ExampleRebatch() {
	set, err := data.New(data.X([]float32{0, 1, 2, 3, 4}, 5))
	if err != nil {
		log.Fatal(err)
	}
	for batch, err := range data.Rebatch(set.Batches(1).All(), 3, data.Padded) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(batch.Samples(), batch.Fields[0].Array.Flat, batch.Fields[1].Array.Flat)
	}
	// Output:
	// 3 [0 1 2] [true true true]
	// 2 [3 4 4] [true true false]
}
