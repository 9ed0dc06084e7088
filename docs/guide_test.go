package docs_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/series"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/xla/export"
)

// These examples are quoted in guide/*.md. The others there are of from_*_test.go and of the programs in ../examples.

func Example_guideData() {
	pixels := make([]float32, 6*4*4) // six images of 4×4 pixels, one channel
	labels := []int32{0, 1, 0, 1, 0, 1}
	set := must.M1(data.New(data.X(pixels, 6, 4, 4, 1), data.Y(labels, 6)))
	training, test := must.M2(set.Split(0.5, 0, data.Stratified("y"))) // the fraction, the seed
	for batch, err := range training.Batches(3, data.Shuffle(0), data.Kept).All() {
		must.M(err)
		y := must.M1(batch.Field("y"))
		fmt.Println(batch.Samples(), "examples, labels of shape", y.Dims)
	}
	fmt.Println(test.Len(), "examples to test with")
	// Output:
	// 3 examples, labels of shape [3]
	// 1 examples, labels of shape [1]
	// 2 examples to test with
}

func Example_guideSeries() {
	ctx := context.Background()
	days, sales := make([]int32, 200), make([]float32, 200)
	for i := range days {
		days[i], sales[i] = int32(i), float32(50+10*math.Sin(float64(i)/5))
	}
	table := must.M1(data.New(data.Named("day", days, 200), data.Named("sales", sales, 200)))
	windows := series.Windows{Length: 14, Horizon: 3, Columns: []string{"sales"}, Targets: []string{"sales"}, Time: "day"}
	parts := must.M1(windows.Split(table, 0.8)) // the first 80 % of the days, and the rest
	prepared := must.M1(tables.Fit(parts[0], tables.Numbers{Columns: []string{"sales"}, Scale: tables.Standard},
		tables.Labels{Columns: []string{"next sales"}, Numbers: true, Scale: tables.Standard}))
	model := must.M1(flaxlike.New(ctx, nn.Sequential{nn.LSTM{Units: 8, Last: true}, nn.Dense{Units: 3}},
		flaxlike.WithLoss("mean_squared_error"), flaxlike.WithPreparation(prepared)))
	defer model.Close()
	must.M1(model.Fit(ctx, parts[0], flaxlike.Fit{Epochs: 2, Validation: parts[1], Output: io.Discard}))
	forecast := must.M1(must.M1(model.Predict(ctx, must.M1(windows.Last(table)))).Output())
	fmt.Println("forecast of", forecast.Dims)
	// Output:
	// forecast of [1 3]
}

func Example_guideSource() {
	ctx := context.Background()
	step := func(b *managed.Builder) {
		b.Loss("loss", losses.SquaredError(b.Field("y"), nn.Dense{Units: 1}.Apply(b.Scope(), b.Field("x"))))
	}
	state := must.M1(managed.New(jit(), managed.WithOptimizer(optim.New(0.1, optim.Adam{}))))
	source := loop.From(func(position int64) iter.Seq2[data.Batch, error] {
		return func(yield func(data.Batch, error) bool) {
			for ; ; position++ {
				random := rand.New(rand.NewPCG(0, uint64(position))) // the same batch at the same step
				x, y := make([]float32, 16), make([]float32, 16)     // new memory for each batch
				for i := range x {
					x[i] = random.Float32()
					y[i] = 3*x[i] + 1
				}
				batch := data.Batch{Fields: []data.Field{data.X(x, 16, 1), data.Y(y, 16, 1)}}
				if !yield(batch, nil) {
					return
				}
			}
		}
	})
	training := loop.New(loop.On(loop.EachStep, managed.TrainStep(step)))
	result := must.M1(training.Run(ctx, state, source, loop.Until(loop.Steps(300))))
	fmt.Println("loss below 0.01:", must.M1(result.History.Last("loss")) < 0.01)
	must.M(state.Close())
	// Output:
	// loss below 0.01: true
}

func Example_guideExport() {
	ctx, dir, runtime := context.Background(), must.M1(os.MkdirTemp("", "guide-")), cpu()
	defer os.RemoveAll(dir)
	training, test := digits()
	model, folder := newClassifier(ctx), filepath.Join(dir, "digits")
	must.M1(model.Fit(ctx, training, flaxlike.Fit{Output: io.Discard}))
	batch := must.M1(data.Peek(test.Batches(8).All()))
	must.M(model.Export(folder, batch, managed.ExportOptions{}))

	program := must.M1(export.Load(folder)) // checks the files' sizes and checksums
	loaded := must.M1(program.Compile(runtime))
	images := tensors.FromFlatDataAndDimensions(make([]float32, 8*64), 8, 8, 8, 1)
	outputs := must.M1(loaded.Run(map[string]*tensors.Tensor{"x": images}))
	for name, output := range outputs {
		fmt.Println(name, output.Shape().Dimensions)
	}
	must.M(model.Close())
	// Output:
	// preds [8 10]
}

func Example_guideChecks() {
	ctx := context.Background()
	training, test := digits()
	model := newClassifier(ctx)
	must.M1(model.Fit(ctx, training, flaxlike.Fit{FastDevRun: true, Validation: test, Output: io.Discard}))
	history := must.M1(model.Fit(ctx, training, flaxlike.Fit{OverfitBatches: 1, Epochs: 200, Output: io.Discard}))
	loss := must.M1(history.Last("loss")) // close to 0, or the model or the labels are wrong
	fmt.Println("loss below 0.05:", loss < 0.05)
	must.M(model.Close())
	// Output:
	// loss below 0.05: true
}
