package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/pretrained/openai"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A folder's model continues texts for OpenAI's clients.
func ExampleNewHandler() {
	ctx := context.Background()
	base, err := pretrained.Open(ctx, "../testdata/qwen3")
	check(err)
	tokenizer, err := text.Open("../testdata/tokenizer.json")
	check(err)
	generation, err := base.Generation()
	check(err)
	runtime, err := xla.Open(ctx, xla.CPU)
	check(err)
	network := base.CausalLM()
	state, err := managed.New(strategies.Jit(runtime), network.Weights())
	check(err)
	generator, err := network.Generator(state, 1, 64)
	check(err)
	handler, err := openai.NewHandler(map[string]openai.Model{"small": {Tokenizer: tokenizer, Generator: generator, Generation: generation}}, openai.Options{})
	check(err)

	server := httptest.NewServer(handler)
	body := `{"model": "small", "prompt": "w5 w6", "max_tokens": 4}`
	answer, err := http.Post(server.URL+"/v1/completions", "application/json", strings.NewReader(body))
	check(err)
	var completion struct{ Usage map[string]int }
	check(json.NewDecoder(answer.Body).Decode(&completion))
	fmt.Println(completion.Usage)
	server.Close()
	check(generator.Close())
	check(state.Close())
	check(runtime.Close())
	// Output: map[completion_tokens:4 prompt_tokens:2 total_tokens:6]
}
