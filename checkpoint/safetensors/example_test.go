package safetensors_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

func ExampleWriter() {
	weights := []float32{1, 2, 3, 4, 5, 6}
	tensors := []safetensors.Tensor{
		{Name: "dense/weights", DType: safetensors.F32, Dims: []int{2, 3}},
		{Name: "text", DType: safetensors.U8, Dims: []int{5}},
	}
	var file bytes.Buffer // an *os.File, mostly
	w, err := safetensors.NewWriter(&file, tensors, map[string]string{"format": "np"})
	if err != nil {
		log.Fatal(err)
	}
	sum, err := w.Write("dense/weights", safetensors.Bytes(weights)) // no copy
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("weights", sum)
	sum, err = w.WriteFunc("text", func(w io.Writer) error { // for what is not in memory as a whole
		_, err := io.Copy(w, strings.NewReader("hello"))
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("text", sum)
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(file.Len(), "bytes")
	// Output:
	// weights 805104b9
	// text 9a71bb4c
	// 197 bytes
}

func ExampleReader() {
	file := file() // of ExampleWriter
	r, err := safetensors.NewReader(bytes.NewReader(file), int64(len(file)), safetensors.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	for t := range r.Tensors() {
		fmt.Println(t.Name, t.DType, t.Dims)
	}
	data, sum, err := r.Read("dense/weights")
	if err != nil {
		log.Fatal(err)
	}
	weights, err := safetensors.Values[float32](data)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(weights, sum)
	data, err = r.ReadRows("dense/weights", 1, 2)
	if err != nil {
		log.Fatal(err)
	}
	row, err := safetensors.Values[float32](data)
	fmt.Println(row, err, r.Metadata())
	// Output:
	// dense/weights F32 [2 3]
	// text U8 [5]
	// [1 2 3 4 5 6] 805104b9
	// [4 5 6] <nil> map[format:np]
}

func file() []byte {
	var out bytes.Buffer
	w, err := safetensors.NewWriter(&out, []safetensors.Tensor{
		{Name: "dense/weights", DType: safetensors.F32, Dims: []int{2, 3}},
		{Name: "text", DType: safetensors.U8, Dims: []int{5}},
	}, map[string]string{"format": "np"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := w.Write("dense/weights", safetensors.Bytes([]float32{1, 2, 3, 4, 5, 6})); err != nil {
		log.Fatal(err)
	}
	if _, err := w.Write("text", []byte("hello")); err != nil {
		log.Fatal(err)
	}
	return out.Bytes()
}
