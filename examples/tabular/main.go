// Command tabular learns the species of penguins from a table with texts and missing values, saves the model, and
// predicts one more bird:
//
//	go run ./examples/tabular examples/tabular/penguins.csv
//
// The table is palmerpenguins, unchanged (https://allisonhorst.github.io/palmerpenguins; A. M. Horst, A. P. Hill and K.
// B. Gorman, 2020), in the public domain (CC0 1.0).
package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

func main() {
	must.M = loop.Exit
	ctx, seed := context.Background(), flag.Int64("seed", 0, "of the parameters and of what is drawn of the data")
	flag.Parse()
	table := must.M1(tables.Open(flag.Arg(0), tables.Format{Texts: true, Missing: []string{"NA"}}))
	train, test := must.M2(table.Split(0.75, uint64(*seed), data.Stratified("species")))
	prepared := must.M1(tables.Fit(train, tables.Numbers{Fill: tables.FillMedian, Scale: tables.Standard},
		tables.Categories{Columns: []string{"island", "sex"}, Fill: tables.FillMostFrequent}, tables.Labels{Columns: []string{"species"}}))
	model := must.M1(flaxlike.New(ctx, nn.Sequential{nn.Dense{Units: 32}, nn.Activation("relu"),
		nn.Dense{Units: 3}}, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"),
		flaxlike.WithPreparation(prepared), flaxlike.WithSeed(*seed), flaxlike.InstallIfMissing(func(line string) { fmt.Println(line) })))
	defer model.Close()
	must.M1(model.Fit(ctx, train, flaxlike.Fit{Epochs: 20, Validation: test}))
	fmt.Printf("test accuracy: %.3f\n", must.M1(model.Evaluate(ctx, test))["accuracy"])
	must.M(model.Save("penguins.safetensors")) // with the preparation: lazo model predict penguins.safetensors BIRDS.csv
	bird := map[string]any{"island": "Dream", "sex": "female", "year": 2009, "body_mass_g": nil,
		"bill_length_mm": 46.5, "bill_depth_mm": 17.9, "flipper_length_mm": 192} // nobody has weighed it
	species := must.M1(must.M1(model.PredictRows(ctx, bird)).Labels())
	fmt.Println("the bird is:", species[0][0])
}
