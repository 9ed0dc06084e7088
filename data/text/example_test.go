package text_test

import (
	"encoding/json"
	"fmt"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data/text"
)

// A vocabulary is learned from two texts, and kept as a tokenizer.json.
func Example() {
	texts := func(yield func(string, error) bool) {
		_ = yield("the loop takes a batch", nil) && yield("the step takes the batch of the loop", nil)
	}
	tokens := must.M1(text.BPETraining{Size: 280, Special: []string{"<|endoftext|>"}}.Train(texts))
	ids := must.M1(tokens.Encode("the loop takes the train<|endoftext|>"))
	for _, id := range ids {
		token, _ := tokens.Token(id)
		fmt.Printf("%q", token)
	}
	fmt.Println()

	var again text.Tokenizer // as Python's Tokenizer.from_file reads it
	must.M(json.Unmarshal(must.M1(json.Marshal(tokens)), &again))
	fmt.Println(must.M1(again.Decode(ids)))
	// Output:
	// "the"" loop"" takes"" the"" ""t""r""a""i""n""<|endoftext|>"
	// the loop takes the train<|endoftext|>
}
