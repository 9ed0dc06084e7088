package chat_test

import (
	"fmt"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/data/text/chat"
)

// A model's GGUF has its vocabulary and its template.
func Example() {
	vocabulary := text.Vocabulary{Model: "gpt2", Pre: "smollm", Tokens: []string{"<|im_end|>"}, Types: []int32{3}, Special: map[string]int32{"eos": 0},
		Template: "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{{ eos_token }}\n{% endfor %}"}
	template := must.M1(chat.New(must.M1(vocabulary.Tokenizer())))
	fmt.Print(must.M1(template.Apply([]chat.Message{{Role: "user", Content: "hello"}}, false)))
	// Output:
	// <|im_start|>user
	// hello<|im_end|>
}
