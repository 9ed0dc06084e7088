package files_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/lazo-ml/lazo/data/files"
)

func ExampleReadIDX() {
	file := []byte{0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6} // uint8 [2 3]
	a, err := files.ReadIDX(bytes.NewReader(file), 1<<20)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.DType(), a.Dims, a.Flat)
	_, err = files.ReadIDX(bytes.NewReader(file[:15]), 1<<20)
	fmt.Println(err)
	// Output:
	// uint8 [2 3] [1 2 3 4 5 6]
	// files: read idx: input: byte 15: in element 4 of 6: the file ends too early: unexpected EOF
}
