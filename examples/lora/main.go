// Command lora fine-tunes a causal language model, like a Llama, SmolLM or Qwen, on a file's lines with LoRA, and
// continues a prompt:
//
//	go run ./examples/lora -text lines.txt -prompt "The capital of France is" FOLDER
//
// FOLDER has the model and its tokenizer, as of the Hugging Face hub. The folder adapter, which it writes, loads in
// Python by PeftModel.from_pretrained(model, "adapter").
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func main() {
	must.M = loop.Exit
	file := flag.String("text", "", "a `file` of lines, each a text")
	prompt := flag.String("prompt", "", "a text to continue")
	adapter := flag.String("adapter", "adapter", "a `folder` to write")
	rank, epochs := flag.Int("rank", 8, "of the additions"), flag.Int("epochs", 3, "how often to go over the lines")
	rate := flag.Float64("rate", 1e-3, "the learning rate")
	flag.Parse()
	if flag.NArg() != 1 || *file == "" {
		must.M(errors.New("expected -text FILE and the folder of a model"))
	}
	ctx, stop := loop.WithSignals(context.Background())
	defer stop()
	on := strategies.Jit(must.M1(xla.Open(ctx, xla.CPU, xla.InstallIfMissing(func(line string) { log.Print(line) }))))
	defer on.Runtime().Close()
	base := must.M1(pretrained.Open(ctx, flag.Arg(0)))
	tokens := must.M1(base.Tokenizer())
	set := examples(tokens, strings.Split(strings.TrimSpace(string(must.M1(os.ReadFile(*file)))), "\n"))

	network := base.CausalLM().LoRA(pretrained.LoRA{Rank: *rank, Alpha: 2 * float64(*rank), Targets: []string{"all-linear"}})
	model := must.M1(flaxlike.New(ctx, network, flaxlike.WithStrategy(on), flaxlike.WithBatchSize(8),
		flaxlike.WithLoss("masked_sparse_categorical_crossentropy"), flaxlike.WithOptimizer(optim.New(*rate, optim.Adam{}))))
	defer model.Close()
	first := must.M1(model.Evaluate(ctx, set))["loss"]
	must.M1(model.Fit(ctx, set, flaxlike.Fit{Epochs: *epochs}))
	fmt.Printf("loss: %.4f at first, %.4f at last\n", first, must.M1(model.Evaluate(ctx, set))["loss"])
	must.M(network.SaveAdapter(*adapter, model))

	if *prompt != "" {
		tuned := base.CausalLM().LoadAdapter(*adapter)
		state := must.M1(managed.New(on, tuned.Weights()))
		defer state.Close()
		generator := must.M1(tuned.Generator(state, 1, 128))
		defer generator.Close()
		fmt.Print(*prompt)
		of := pretrained.Generation{Most: 40, Stop: endOf(tokens), Tokenizer: tokens}
		for piece, err := range generator.Generate(ctx, [][]int32{must.M1(tokens.Encode(*prompt))}, of) {
			must.M(err)
			fmt.Print(piece.Text)
		}
		fmt.Println()
	}
}

// examples has the tokens of lines, and for each the next one as its label. Labels of -100 are ignored.
func examples(tokens *text.Tokenizer, lines []string) *data.Set {
	ids, next := make([][]int32, len(lines)), make([][]int32, len(lines))
	for i, line := range lines {
		ids[i] = append(must.M1(tokens.Encode(line)), endOf(tokens)...)
		next[i] = append(ids[i][1:len(ids[i]):len(ids[i])], -100)
	}
	inputs, mask := must.M2(data.PadSequences(ids, 0))
	labels, _ := must.M2(data.PadSequences(next, -100))
	return must.M1(data.New(data.Field{Name: "input_ids", Array: inputs}, data.Field{Name: "attention_mask", Array: mask}, data.Field{Name: "y", Array: labels}))
}

func endOf(tokens *text.Tokenizer) []int32 {
	if id, ok := tokens.Special("eos"); ok {
		return []int32{id}
	}
	return nil
}
