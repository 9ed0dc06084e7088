// Command text trains an LSTM to classify reviews of different lengths as good or bad, and classifies one: go run
// ./examples/text "the soup was not good but the tea was fine"
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"strings"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

func main() {
	must.M = loop.Exit
	ctx := context.Background()
	epochs := flag.Int("epochs", 6, "how often to go over the reviews")
	seed := flag.Int64("seed", 0, "of the initial parameters and of the order of the data")
	flag.Parse()
	texts, good := reviews(3000)
	table := must.M1(data.New(data.Named("review", texts, len(texts)), data.Named("good", good, len(good))))
	training, test := must.M2(table.Split(0.8, 0))
	prepared := must.M1(tables.Fit(training, tables.Texts{Column: "review", Lower: true, Length: 48},
		tables.Labels{Columns: []string{"good"}, Numbers: true}))
	words := must.M1(prepared.Classes("x"))
	model := must.M1(flaxlike.New(ctx, nn.Sequential{
		nn.Embedding{Vocabulary: len(words), Width: 16, Padding: new(0)}, nn.LSTM{Units: 32, Last: true}, nn.Dense{Units: 1}},
		flaxlike.WithLoss("binary_crossentropy"), flaxlike.WithClasses([]string{"bad", "good"}), flaxlike.WithMetrics("accuracy"), flaxlike.WithLearningRate(0.01),
		flaxlike.WithPreparation(prepared), flaxlike.WithSeed(*seed), flaxlike.InstallIfMissing(func(line string) { log.Print(line) })))
	defer model.Close()
	must.M1(model.Fit(ctx, training, flaxlike.Fit{Epochs: *epochs, Validation: test}))
	fmt.Printf("test accuracy: %.3f\n", must.M1(model.Evaluate(ctx, test))["accuracy"])
	if review := strings.Join(flag.Args(), " "); review != "" {
		predicted := must.M1(model.PredictRows(ctx, map[string]any{"review": review}))
		fmt.Printf("%q is a %s review\n", review, must.M1(predicted.Labels())[0][0])
	}
}
