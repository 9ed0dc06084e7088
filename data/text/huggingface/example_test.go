package huggingface_test

import (
	"fmt"
	"log"

	"github.com/lazo-ml/lazo/data/text/huggingface"
)

// A folder as it comes from the hub, here with the model of sentencepiece.
func ExampleOpen() {
	tokens, err := huggingface.Open("testdata")
	if err != nil {
		log.Fatal(err)
	}
	ids, err := tokens.Encode("the loop takes")
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range ids {
		part, err := tokens.Decode([]int32{id})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%q", part)
	}
	// Output: "t""he"" lo""op"" ta""k""es"
}
