package gomlxdata_test

import (
	"fmt"
	"log"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/gomlxdata"
)

// A set of lazo becomes a dataset for GoMLX's trainer; From goes the other way.
func ExampleTo() {
	set, err := data.New(data.X([]float32{1, 2, 3, 4}, 4, 1), data.Y([]int64{0, 1, 0, 1}, 4))
	if err != nil {
		log.Fatal(err)
	}
	dataset := gomlxdata.To("numbers", set.Batches(2).All(), []string{"x"}, []string{"y"})
	for batch, err := range dataset.Iter() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(batch.Inputs[0].Value(), batch.Labels[0].Value())
	}
	for batch, err := range gomlxdata.From(dataset, []string{"x"}, []string{"y"}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(batch.Fields[0].Name, batch.Fields[0].Array.Flat)
	}
	// Output:
	// [[1] [2]] [0 1]
	// [[3] [4]] [0 1]
	// x [1 2]
	// x [3 4]
}
