// Command translate trains an encoder-decoder transformer (Vaswani et al. 2017) to translate between two artificial
// languages that differ in word order and agreement: go run ./examples/translate
//
//   - data.Buckets batches sentences by length, for only two programs.
//   - Training uses teacher forcing; package nn's masks exclude padding.
//   - A test translates greedily with a key-value cache.
package main

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"log"
	"os"
	"strings"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

const (
	batchSize = 64
	testSize  = 512
)

// lengths with the end: one clause, two clauses
var buckets = []int{11, 22}

func main() {
	must.M = loop.Exit
	steps := flag.Int64("steps", 1200, "training steps")
	clauses := flag.Int("clauses", 2, "the most clauses of a sentence, 1 or 2")
	layers := flag.Int("layers", 2, "of the encoder, and of the decoder")
	seed := flag.Int64("seed", 0, "of the initial parameters")
	flag.Parse()
	if *clauses != 1 && *clauses != 2 {
		must.M(fmt.Errorf("-clauses is %d, expected 1 or 2", *clauses))
	}
	ctx, stop := loop.WithSignals(context.Background())
	defer stop()
	runtime := must.M1(xla.Open(ctx, xla.CPU, xla.InstallIfMissing(func(line string) { log.Print(line) })))
	defer runtime.Close()
	schedule := optim.Linear(0, 1, 100).Then(100, optim.Cosine(1, 0, int(*steps)))
	optimizer := optim.New(2e-3, optim.Clip{GlobalNorm: 1}, optim.Adam{}, optim.ScaleBySchedule(schedule))
	state := must.M1(managed.New(strategies.Jit(runtime), managed.WithOptimizer(optimizer), managed.WithSeed(*seed)))
	defer state.Close()

	held, isHeld := first(testSize, sentences(1, *clauses)), map[string]bool{}
	for _, p := range held {
		isHeld[strings.Join(p.source, " ")] = true
	}
	others := data.Filter(sentences(0, *clauses), func(p pair) bool { return !isHeld[strings.Join(p.source, " ")] })
	both := wordsOf(first(5000, others))

	m := network{len(both.source), len(both.target), *layers}
	training := loop.New(loop.On(loop.EachStep, managed.TrainStep(m.learn)))
	until := loop.Until(loop.Steps(*steps))
	must.M1(training.Run(ctx, state, loop.Data[data.Batch](both.batches(others)), until, callbacks.ProgressBar(os.Stderr)))

	padded := func(b data.Batch) (data.Batch, error) { return data.Pad(b, batchSize) } // each length's last batch
	tests := data.Map(both.batches(data.Items(held)), padded)
	translate := managed.TestStep(m.translate)
	_, tested := must.M2(loop.Evaluate("", translate, loop.Data[data.Batch](tests)).Run(ctx, state))
	exact := must.M1(tested.Float("exact_match"))
	fmt.Printf("exact match: %.3f of %d sentences\n", exact, len(held))
	some := must.M1(data.Peek(tests))
	_, logs := must.M2(translate.Step(ctx, state, some))
	source, chosen := must.M1(some.Field("source")), must.M1(managed.Array(logs, "words"))
	for i := range 3 {
		fmt.Printf("%s\n\t%s\n", both.source.text(row(source, i)), both.target.text(row(chosen, i)))
	}
}

func first(n int64, of iter.Seq2[pair, error]) []pair {
	var all []pair
	for p, err := range data.Take(of, n) {
		must.M(err)
		all = append(all, p)
	}
	return all
}

func row(of data.Array, i int) []int32 {
	n := of.Dims[1]
	return of.Flat.([]int32)[i*n : (i+1)*n]
}
