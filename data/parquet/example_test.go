package parquet_test

import (
	"fmt"
	"log"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/parquet"
)

func ExampleOpen() {
	set, err := parquet.Open("testdata/default.parquet", parquet.Format{Fields: []parquet.Field{
		{Name: "x", Columns: []string{"list"}},
		{Name: "y", Columns: []string{"text"}, Classes: []string{"cat", "dog", "eel"}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range set.Fields() {
		fmt.Println(f.Name, f.Array.DType(), f.Array.Dims)
	}
	// Output:
	// x float32 [300 3]
	// y int32 [300]
}

func ExampleTexts() {
	tokens := data.Map(parquet.Texts("testdata/default.parquet", "text"), func(text []byte) ([]int32, error) {
		ids := make([]int32, len(text))
		for i, b := range text {
			ids[i] = int32(b)
		}
		return ids, nil
	})
	first, err := data.Peek(tokens)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first)
	// Output: [99 97 116]
}
