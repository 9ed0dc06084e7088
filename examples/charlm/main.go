// Command charlm trains a causal transformer on the characters of this project's documents, or of a folder's .md and
// .txt files:
//
//	go run ./examples/charlm
//	go run ./examples/charlm -text FOLDER -steps 2000
package main

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"log"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
)

const (
	window    = 64 // in characters
	stride    = 17
	batchSize = 16
)

func main() {
	must.M = loop.Exit
	folder := flag.String("text", "", "a `folder` with .md or .txt files; the documents of this repository without it")
	steps := flag.Int("steps", 1000, "training steps")
	length := flag.Int("sample", 300, "characters to write")
	flag.Parse()
	ctx, stop := loop.WithSignals(context.Background())
	defer stop()
	text, alphabet := read(*folder)
	cut := len(text) * 9 / 10

	model := must.M1(flaxlike.New(ctx, network(len(alphabet)), flaxlike.WithBatchSize(batchSize), flaxlike.WithLearningRate(4e-3),
		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("perplexity"),
		flaxlike.InstallIfMissing(func(line string) { log.Print(line) })))
	defer model.Close()
	held := set(windows(text[cut:], window))
	must.M1(model.FitBatches(ctx, batches(text[:cut]), flaxlike.Fit{Until: loop.Steps(*steps), StepsPerEpoch: min(250, *steps), Validation: held}))
	found := must.M1(model.Evaluate(ctx, held))
	fmt.Printf("perplexity: %.2f (by frequencies alone: %.2f; characters: %d)\n",
		found["perplexity"], byFrequencies(text[:cut], text[cut:], len(alphabet)), len(alphabet))
	fmt.Println(write(ctx, model, alphabet, text[cut:cut+window], *length))
}

// A window's last character is its last target.
func windows(text []int32, stride int) iter.Seq2[[]int32, error] {
	characters := func(yield func(int32, error) bool) {
		for _, c := range text {
			if !yield(c, nil) {
				return
			}
		}
	}
	return data.Window(characters, window+1, stride)
}

// batches shuffles each epoch differently.
func batches(text []int32) loop.Data[data.Batch] {
	shuffled := data.Passes(func(pass int) iter.Seq2[[]int32, error] {
		return data.ShuffleBuffer(windows(text, stride), len(text)/stride, uint64(pass))
	})
	return loop.Data[data.Batch](data.Map(data.Chunk(shuffled, batchSize, data.Dropped), func(runs [][]int32) (data.Batch, error) {
		return data.Batch{Fields: fields(runs), Size: len(runs)}, nil
	}))
}
