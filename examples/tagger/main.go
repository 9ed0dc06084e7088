// Command tagger trains a bidirectional LSTM, with -forward one direction, to tag each sign of a line as inside or
// outside a pair of brackets: go run ./examples/tagger
//
//   - data.Buckets batches lines by length, for only two programs.
//   - The backward recurrence of package nn begins at each line's end.
//   - Loss and metric ignore the padding of lines and batches.
package main

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"log"
	"os"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

const (
	batchSize = 64
	units     = 32
	middle    = 16 // lines up to this length are padded to it, others to the longest
)

func main() {
	must.M = loop.Exit
	steps := flag.Int64("steps", 400, "training steps")
	forward := flag.Bool("forward", false, "in only one direction")
	seed := flag.Int64("seed", 0, "of the initial parameters")
	flag.Parse()
	ctx, stop := loop.WithSignals(context.Background())
	defer stop()
	runtime := must.M1(xla.Open(ctx, xla.CPU, xla.InstallIfMissing(func(line string) { log.Print(line) })))
	defer runtime.Close()
	optimizer := optim.New(1e-2, optim.Clip{GlobalNorm: 1}, optim.Adam{})
	state := must.M1(managed.New(strategies.Jit(runtime), managed.WithOptimizer(optimizer), managed.WithSeed(*seed)))
	defer state.Close()

	// Incomplete batches wait for the next pass.
	known := lines(1, 8192)
	shuffled := data.Passes(func(pass int) iter.Seq2[line, error] {
		return data.ShuffleBuffer(data.Items(known), len(known), uint64(pass))
	})
	step := func(b *managed.Builder) { tag(b, !*forward) }
	training := loop.New(loop.On(loop.EachStep, managed.TrainStep(step)))
	until := loop.Until(loop.Steps(*steps))
	must.M1(training.Run(ctx, state, batches(shuffled, middle, longest), until, callbacks.ProgressBar(os.Stderr)))

	testing := managed.TestStep(step)
	for _, lengths := range [][]int{{middle, longest}, {longest}} {
		test := loop.Evaluate("", testing, batches(data.Items(lines(2, 1024)), lengths...))
		_, logs := must.M2(test.Run(ctx, state))
		accuracy, n := must.M1(logs.Float("accuracy")), must.M1(logs.Float("signs"))
		fmt.Printf("test accuracy of %.0f signs in lines padded to %v: %.4f\n", n, lengths, accuracy)
	}
}

func tag(b *managed.Builder, both bool) {
	row, tags, lengths := b.Field("signs"), b.Field("tags"), b.Field("lengths")
	if counts := b.Mask(); counts != nil { // padding lines have length 0
		lengths = graph.Where(counts, lengths, graph.ZerosLike(lengths))
	}
	x := nn.Embedding{Vocabulary: signs, Width: 8}.Apply(b.Scope().In("signs"), row)
	h := nn.LSTM{Units: units, Bidirectional: both, Mask: lengths}.Apply(b.Scope().In("lstm"), x)
	logits := nn.Dense{Units: 2}.Apply(b.Scope().In("tags"), h)

	counts := nn.MaskOf(nn.Masked(tags, lengths))
	b.Loss("loss", losses.MaskedMean(losses.CrossEntropy(tags, logits), counts))
	b.Track("accuracy", metrics.Accuracy(), counts, tags, logits)
	b.Track("signs", metrics.Sum(), nil, graph.ConvertDType(counts, dtypes.Float32))
}

func batches(of iter.Seq2[line, error], lengths ...int) loop.Data[data.Batch] {
	buckets := data.Buckets(of, batchSize, data.Kept, func(l line) int { return len(l.signs) }, lengths...)
	return loop.Data[data.Batch](data.Map(buckets, func(bucket data.Bucket[line]) (data.Batch, error) {
		var rows, tags [][]int32
		var long []int32
		for _, l := range bucket.Items {
			rows, tags, long = append(rows, l.signs), append(tags, l.tags), append(long, int32(len(l.signs)))
		}
		x, _, err := data.PadSequences(rows, closes, bucket.Length) // not counted: it would close brackets
		if err != nil {
			return data.Batch{}, err
		}
		y, _, err := data.PadSequences(tags, 0, bucket.Length)
		if err != nil {
			return data.Batch{}, err
		}
		return data.Pad(data.Batch{Size: len(rows), Fields: []data.Field{
			{Name: "signs", Array: x}, {Name: "tags", Array: y}, data.Named("lengths", long, len(long)),
		}}, batchSize)
	}))
}
