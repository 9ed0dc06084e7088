package docs_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/images"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/train"
)

// Each argument of Keras's methods and each of its callbacks, losses, metrics and optimizers has a row under its
// heading. The list is made by testdata/keras_list.py.
func TestKeras_list(t *testing.T) {
	counts := checkRows(t, "from-keras.md", "testdata/keras_list.txt")
	require.Len(t, counts, 9)
	require.Greater(t, counts["callback"], 14)
}

// flaxlike knows each name that the tables of losses, metrics and optimizers have in quotes.
func TestKeras_names(t *testing.T) {
	text, err := os.ReadFile("from-keras.md")
	require.NoError(t, err)
	options := map[string]func(string) flaxlike.Option{
		"loss": func(name string) flaxlike.Option { return flaxlike.WithLoss(name) }, "optimizer": func(name string) flaxlike.Option { return flaxlike.WithOptimizer(name) },
		"metric": func(name string) flaxlike.Option { return flaxlike.WithMetrics(name) },
	}
	checked := 0
	for group, rows := range rowsByHeading(string(text)) {
		for _, cell := range rows {
			for _, name := range span.FindAllStringSubmatch(cell, -1) {
				if name, isQuoted := strings.CutPrefix(name[1], `"`); isQuoted {
					require.Contains(t, options, group, name)
					model, err := flaxlike.New(t.Context(), nn.Dense{Units: 1}, flaxlike.WithStrategy(jit()), options[group](strings.TrimSuffix(name, `"`)))
					require.NoError(t, err)
					require.NoError(t, model.Close())
					checked++
				}
			}
		}
	}
	require.Greater(t, checked, 30)
	t.Logf("%d names", checked)
}

func Example_kerasFit() {
	ctx := context.Background()
	training, test := digits()
	model := must.M1(flaxlike.New(ctx, nn.Sequential{
		nn.Flatten{}, nn.Dense{Units: 64}, nn.Activation("relu"), nn.Dropout{Rate: 0.2}, nn.Dense{Units: 10}},
		flaxlike.WithOptimizer("adam"), flaxlike.WithLearningRate(0.01),
		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy")))
	history := must.M1(model.Fit(ctx, training, flaxlike.Fit{
		BatchSize: 16, Epochs: 8, ValidationSplit: 0.125, Output: io.Discard}))
	losses := must.M1(history.Collect("loss", "val_loss")) // one value an epoch
	figures := must.M1(model.Evaluate(ctx, test))          // figures["accuracy"]
	predicted := must.M1(model.Predict(ctx, test))         // predicted.Output(): logits, Probabilities(), Classes(), Labels()
	fmt.Println("epochs:", len(losses[0]), "and", len(losses[1]))
	fmt.Println("accuracy above 0.7:", figures["accuracy"] > 0.7)
	fmt.Println("logits:", must.M1(predicted.Output()).Dims)
	must.M(model.Close())
	// Output:
	// epochs: 8 and 8
	// accuracy above 0.7: true
	// logits: [64 10]
}

func Example_kerasOwn() {
	ctx, strategy := context.Background(), jit()
	set := must.M1(data.New(data.Named("left", []float32{1, 2, 3, 4}, 4, 1), data.Named("right", []float32{4, 3, 2, 1}, 4, 1),
		data.Named("sum", []float32{5, 5, 5, 5}, 4, 1), data.Named("larger", []float32{0, 0, 1, 1}, 4)))
	network := func(scope *model.Scope, input func(name string) *graph.Node) map[string]*graph.Node {
		both := graph.Concatenate([]*graph.Node{input("left"), input("right")}, -1)
		h := nn.Sequential{nn.Dense{Units: 8}, nn.Activation("tanh")}.Apply(scope.In("trunk"), both)
		return map[string]*graph.Node{
			"sum":    nn.Dense{Units: 1}.Apply(scope.In("sum"), h),
			"larger": nn.Dense{Units: 1}.Apply(scope.In("larger"), h),
		}
	}
	pinball := func(labels, output *graph.Node) *graph.Node { // of the quantile 0.9: a value for each example
		off := graph.Sub(labels, output)
		return graph.Max(graph.MulScalar(off, 0.9), graph.MulScalar(off, -0.1))
	}
	model := must.M1(flaxlike.New(ctx, flaxlike.Functional(network), flaxlike.WithStrategy(strategy),
		flaxlike.WithLoss(
			flaxlike.Loss{Name: "pinball", Func: pinball, Output: "sum"},
			flaxlike.Loss{Name: "binary_crossentropy", Output: "larger", Weight: 0.5}),
		flaxlike.WithMetrics(flaxlike.Metric{Name: "accuracy", Output: "larger"})))
	must.M(must.M1(model.Fit(ctx, set, flaxlike.Fit{BatchSize: 4, Epochs: 2, Output: io.Discard})).WriteCSV(new(strings.Builder)))
	figures := must.M1(model.Evaluate(ctx, set))
	_, there := figures["larger_accuracy"]
	fmt.Println(there)
	must.M(model.Close())
	// Output:
	// true
}

func Example_kerasSequences() {
	ctx, strategy := context.Background(), jit()
	source, target, next := []int32{5, 6, 7, 0}, []int32{1, 7, 6, 5, 0}, []int32{7, 6, 5, 2, 0}
	set := must.M1(data.New(data.Named("source", source, 1, 4), data.Named("target", target, 1, 5), data.Y(next, 1, 5)))
	words := nn.Embedding{Vocabulary: 20, Width: 8, Padding: new(0)}
	network := func(scope *model.Scope, input func(name string) *graph.Node) map[string]*graph.Node {
		memory := words.Apply(scope.In("words"), input("source"))
		memory = nn.GRU{Units: 8}.Apply(scope.In("encoder"), memory)
		h := words.Apply(scope.Shared("words"), input("target"))
		h = nn.Attention{Heads: 2, Width: 4, Causal: true}.Apply(scope.In("itself"), h)
		seen := nn.Attention{Heads: 2, Mask: nn.MaskOf(memory)}.Cross(scope.In("across"), h, memory)
		logits := words.Logits(scope.Shared("words"), graph.Add(h, seen))
		return map[string]*graph.Node{"next": nn.Masked(logits, nn.MaskOf(h))} // Add and Logits hand no mask on
	}
	model := must.M1(flaxlike.New(ctx, flaxlike.Functional(network), flaxlike.WithStrategy(strategy), flaxlike.WithLearningRate(0.1),
		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy")))
	must.M1(model.Fit(ctx, set, flaxlike.Fit{BatchSize: 1, Epochs: 20, Output: io.Discard}))
	fmt.Println("it knows the four words:", must.M1(model.Evaluate(ctx, set))["accuracy"])
	must.M(model.Close())
	// Output:
	// it knows the four words: 1
}

func newClassifier(ctx context.Context) *flaxlike.Model {
	return must.M1(flaxlike.New(ctx, nn.Sequential{nn.Flatten{}, nn.Dense{Units: 16}, nn.Activation("relu"), nn.Dense{Units: 10}},
		flaxlike.WithStrategy(jit()), flaxlike.WithLearningRate(0.01), flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy")))
}

func Example_kerasCallbacks() {
	ctx := context.Background()
	training, test := digits()
	model, dir := newClassifier(ctx), must.M1(os.MkdirTemp("", "from-keras-"))
	defer os.RemoveAll(dir)
	epoch := loop.Steps(training.Len() / 32)
	beside := []loop.Option{
		callbacks.StopEarly("val_loss", callbacks.Evaluations(3), callbacks.Monitor{MinDelta: 0.001}), // EarlyStopping
		callbacks.KeepBest("val_loss", callbacks.Monitor{MinDelta: 0.001}),                            // its restore_best_weights
		callbacks.ReduceOnPlateau("val_loss", 0.5, callbacks.Evaluations(2)),
		callbacks.OnBest("val_accuracy", func(ctx context.Context, r loop.Report) error { // ModelCheckpoint
			return model.Save(filepath.Join(dir, "best.safetensors"))
		}),
		callbacks.CSV(filepath.Join(dir, "log.csv"), loop.Every(epoch)), // CSVLogger
		callbacks.NonFinite(), // TerminateOnNaN
		loop.Watch(loop.Every(epoch), func(ctx context.Context, r loop.Report) error { // LambdaCallback
			rate, err := model.LearningRate()
			slog.InfoContext(ctx, "epoch", "number", r.Elapsed.Steps/int64(epoch), "rate", rate)
			return err
		}),
	}
	history := must.M1(model.Fit(ctx, training, flaxlike.Fit{Epochs: 5, Validation: test, Callbacks: beside, Output: io.Discard}))
	best, _ := must.M2(history.Best("val_accuracy", loop.Highest))
	fmt.Println("best accuracy above 0.6:", best > 0.6, "of", history.Len(), "epochs")
	for _, file := range must.M1(os.ReadDir(dir)) {
		fmt.Println(file.Name())
	}
	must.M(model.Close())
	// Output:
	// best accuracy above 0.6: true of 5 epochs
	// best.safetensors
	// log.csv
}

func Example_kerasBackup() {
	ctx, dir := context.Background(), must.M1(os.MkdirTemp("", "from-keras-"))
	defer os.RemoveAll(dir)
	training, _ := digits()
	run := func(epochs int) int {
		model := newClassifier(ctx)
		history := must.M1(model.Fit(ctx, training, flaxlike.Fit{Epochs: epochs, Output: io.Discard,
			Callbacks: []loop.Option{checkpoint.Resume(dir, checkpoint.Every(loop.Epochs(1)))}}))
		must.M(model.Close())
		return history.Len()
	}
	fmt.Println("epochs in the history:", run(2), "and then", run(3))
	// Output:
	// epochs in the history: 2 and then 3
}

func Example_kerasTrainStep() {
	ctx, training := context.Background(), line(64)
	step := func(b *managed.Builder) {
		network := nn.Sequential{nn.Dense{Units: 16}, nn.Activation("tanh"), nn.Dense{Units: 1}}
		x, y := b.Field("x"), b.Field("y")
		output := network.Apply(b.Scope(), x)
		b.Loss("loss", losses.SquaredError(y, output))
		if b.Training() {
			slope := graph.Gradient(graph.ReduceAllSum(output), x)[0]
			b.Loss("slope_penalty", graph.MulScalar(graph.ReduceAllMean(graph.Square(slope)), 1e-4))
		}
	}
	state := must.M1(managed.New(jit(), managed.WithOptimizer(optim.New(0.01, optim.Clip{GlobalNorm: 1}, optim.Adam{}))))
	fit := train.Loop[*managed.State, data.Batch]{
		Step:  managed.TrainStep(step),
		Epoch: loop.Steps(training.Len() / 16),
		Tests: []loop.Evaluation[*managed.State, data.Batch]{
			loop.Evaluate("test", managed.TestStep(step), training.Batches(64)),
		},
	}
	result := must.M1(fit.Run(ctx, state, training.Batches(16, data.Shuffle(0)), loop.Until(loop.Steps(400))))
	fmt.Println("test loss below 0.1:", must.M1(result.History.Last("loss_test")) < 0.1)
	must.M(state.Close())
	// Output:
	// test loss below 0.1: true
}

func Example_kerasData() {
	ctx := context.Background()
	training, _ := digits()
	model := newClassifier(ctx)
	batches := training.Batches(32, data.Shuffle(0)) // shuffle, batch, repeat
	augment := images.Augment(0, "x", images.RandomShift(1, 1))
	pipeline := loop.From(func(position int64) iter.Seq2[data.Batch, error] { // from any step on, to resume
		augmented := data.ParallelMap(batches.From(position), 2, augment) // map(num_parallel_calls=2)
		return data.Prefetch(augmented, 2)                                // prefetch
	})
	history := must.M1(model.FitBatches(ctx, pipeline, flaxlike.Fit{
		StepsPerEpoch: training.Len() / 32, Epochs: 2, Output: io.Discard}))
	fmt.Println("epochs:", history.Len())
	must.M(model.Close())
	// Output:
	// epochs: 2
}

func Example_kerasTables() {
	path := filepath.Join(must.M1(os.MkdirTemp("", "")), "birds.csv")
	must.M(os.WriteFile(path, []byte("mass,island,species\n3700,Dream,a\n,Biscoe,b\n3900,Dream,a\n4100,Dream,b\n"), 0o600))
	table := must.M1(tables.Open(path, tables.Format{Texts: true}))
	train, test := must.M2(table.Split(0.5, 0, data.Stratified("species")))
	preparation := must.M1(tables.Fit(train,
		tables.Numbers{Columns: []string{"mass"}, Fill: tables.FillMedian, Scale: tables.Standard}, // SimpleImputer, Normalization
		tables.Categories{Columns: []string{"island"}, Unknown: tables.UnknownOwn},                 // StringLookup(output_mode="one_hot")
		tables.Labels{Columns: []string{"species"}}))
	ctx := context.Background()
	model := must.M1(flaxlike.New(ctx, nn.Sequential{nn.Dense{Units: 2}}, flaxlike.WithPreparation(preparation), // which Open restores
		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"), flaxlike.WithStrategy(jit())))
	must.M1(model.Fit(ctx, train, flaxlike.Fit{Validation: test, Output: io.Discard})) // of the tables as they were read
	one := must.M1(model.PredictRows(ctx, map[string]any{"mass": nil, "island": "Torgersen"}))
	fmt.Println(must.M1(one.ClassNames()), one.Len())
	must.M(model.Close())
	must.M(os.RemoveAll(filepath.Dir(path)))
	// Output:
	// [a b] 1
}

// scaled is a custom layer with a setting.
type scaled struct{ By float64 }

func (s scaled) Apply(_ *model.Scope, x *graph.Node) *graph.Node {
	return graph.MulScalar(x, s.By)
}

func Example_kerasSave() {
	ctx, dir := context.Background(), must.M1(os.MkdirTemp("", "from-keras-"))
	defer os.RemoveAll(dir)
	training, test := digits()
	strategy, path := jit(), filepath.Join(dir, "digits.safetensors")
	model := must.M1(flaxlike.New(ctx, nn.Sequential{nn.Flatten{}, scaled{0.5}, nn.Dense{Units: 10}}, flaxlike.WithStrategy(strategy),
		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithClasses([]string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"})))
	must.M1(model.Fit(ctx, training, flaxlike.Fit{Output: io.Discard}))
	must.M(model.Save(path)) // network, values, losses, metrics, classes, and a card of what it was trained on
	again := must.M1(flaxlike.Open(ctx, path, flaxlike.WithStrategy(strategy), flaxlike.WithLayer("scaled", scaled{})))
	labels := must.M1(must.M1(again.Predict(ctx, test)).Labels()) // labels[0] is ["three"]
	fmt.Println(len(labels[0]), again.Describe().Card.Examples, len(labels))
	must.M(model.Close())
	must.M(again.Close())
	// Output:
	// 1 256 64
}

func Example_kerasFineTuning() {
	ctx, dir := context.Background(), must.M1(os.MkdirTemp("", "from-keras-"))
	defer os.RemoveAll(dir)
	training, _ := digits()
	network := nn.Sequential{nn.Flatten{},
		nn.Named{Name: "body", Layer: nn.Sequential{nn.Dense{Units: 32}, nn.Activation("relu")}},
		nn.Named{Name: "head", Layer: nn.Dense{Units: 10}}}
	old, path := must.M1(flaxlike.New(ctx, network, flaxlike.WithStrategy(jit()), flaxlike.WithLoss("sparse_categorical_crossentropy"))), filepath.Join(dir, "w.safetensors")
	must.M1(old.Fit(ctx, training, flaxlike.Fit{Output: io.Discard}))
	must.M(old.Save(path))
	strategy := jit()
	frozen := optim.New(1e-3, optim.Frozen(optim.Under("/model/1/body")), optim.Adam{}) // body.trainable = False
	model := must.M1(flaxlike.New(ctx, network, flaxlike.WithStrategy(strategy),
		flaxlike.WithOptimizer(frozen), flaxlike.WithLoss("sparse_categorical_crossentropy")))
	first := must.M1(data.Peek(training.Batches(32).All()))
	must.M(model.Init(ctx, first)) // makes the variables, as Keras's build
	copied := must.M1(model.LoadSome(ctx, path, optim.Under("/model/1/body")))
	must.M1(model.Fit(ctx, training, flaxlike.Fit{Epochs: 2, Output: io.Discard}))
	same := func(name string) bool {
		return must.M1(old.Value(name)).Equal(must.M1(model.Value(name)))
	}
	fmt.Println("taken:", len(copied.Taken), "left:", len(copied.Left))
	fmt.Println("body as it was:", same("/model/1/body/0/kernel"), "head as it was:", same("/model/2/head/kernel"))
	must.M(old.Close())
	must.M(model.Close())
	// Output:
	// taken: 2 left: 2
	// body as it was: true head as it was: false
}

func Example_kerasAverage() {
	ctx, strategy, set := context.Background(), jit(), line(64)
	network := nn.Dense{Units: 1}
	average := optim.Average{Decay: 0.9}
	averaged := func(scope *model.Scope, x *graph.Node) (output *graph.Node) {
		if scope.IsTraining(x.Graph()) {
			return network.Apply(scope, x)
		}
		average.In(scope.Store().RootScope(), x.Graph(), func() { output = network.Apply(scope, x) })
		return output
	}
	model := must.M1(flaxlike.New(ctx, nn.Func(averaged), flaxlike.WithStrategy(strategy),
		flaxlike.WithOptimizer(optim.New(0.1, optim.Adam{}, average)), flaxlike.WithLoss("mse")))
	history := must.M1(model.Fit(ctx, set, flaxlike.Fit{Epochs: 5, Output: io.Discard}))
	figures := must.M1(model.Evaluate(ctx, set))
	fmt.Println("the average lags:", figures["loss"] > must.M1(history.Last("loss")))
	must.M(model.Close())
	// Output:
	// the average lags: true
}
