// Command finetune trains a pretrained encoder to classify sentences of lazo's documentation by the part of lazo that
// they are about, and saves it for Python's transformers: go run ./examples/finetune "moves the state to a GPU"
package main

import (
	"context"
	_ "embed"
	"encoding/csv"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/pretrained"
)

//go:embed texts.csv
var sentences string

func main() {
	must.M = loop.Exit
	ctx := context.Background()
	from := flag.String("model", "sentence-transformers/all-MiniLM-L6-v2", "a folder, or the name of a model, which is downloaded")
	most := flag.Int("tokens", 64, "of a sentence, at most")
	epochs, rate := flag.Int("epochs", 4, "how often to go over the texts"), flag.Float64("rate", 1e-4, "the learning rate after the warm-up")
	seed, save := flag.Int64("seed", 0, "of the head's parameters and of the order of the data"), flag.String("save", "", "a folder for the trained model")
	file := flag.String("texts", "", "a CSV file in place of the documentation: text, label and, if chosen beforehand, \"training\" or \"test\"")
	flag.Parse()
	if _, err := os.Stat(*from); err != nil {
		cache := filepath.Join(must.M1(os.UserCacheDir()), "huggingface", "hub")
		*from = must.M1(pretrained.Download(ctx, *from, pretrained.Hub{Cache: cache, Token: os.Getenv("HF_TOKEN")}))
	}
	base := must.M1(pretrained.Open(ctx, *from))
	if *file != "" {
		sentences = string(must.M1(os.ReadFile(*file)))
	}
	texts, parts, names, rows := read()
	all := must.M1(base.Set(text.Inputs(texts, *most), data.Y(parts, len(parts))))
	training, test := must.M2(all.Split(0.8, 0, data.Stratified("y")))
	if len(rows["test"]) > 0 {
		training, test = must.M1(all.Gather(rows["training"])), must.M1(all.Gather(rows["test"]))
	}

	network := base.Classifier(len(names))
	network.Labels = names
	const size = 32
	steps := *epochs * (training.Len()/size + 1)
	model := must.M1(flaxlike.New(ctx, network, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"),
		flaxlike.WithClasses(names), flaxlike.WithOptimizer(optim.New(*rate, optim.Clip{GlobalNorm: 1}, optim.Adam{},
			optim.ScaleBySchedule(optim.Linear(0, 1, steps/10).Then(steps/10, optim.Linear(1, 0, steps-steps/10))))),
		flaxlike.WithSeed(*seed), flaxlike.InstallIfMissing(func(line string) { log.Print(line) })))
	defer model.Close()
	must.M1(model.Fit(ctx, training, flaxlike.Fit{Epochs: *epochs, BatchSize: size, Augment: []func(data.Batch) (data.Batch, error){pretrained.Trim(8)}}))
	fmt.Printf("test accuracy: %.3f\n", must.M1(model.Evaluate(ctx, test))["accuracy"])
	if *save != "" {
		must.M(network.Save(*save, model))
	}
	if flag.NArg() > 0 {
		predicted := must.M1(model.Predict(ctx, must.M1(base.Set(text.Inputs(flag.Args(), *most)))))
		for i, labels := range must.M1(predicted.Labels()) {
			fmt.Printf("%q is about %s\n", flag.Arg(i), labels[0])
		}
	}
}

func read() (texts []string, labels []int32, names []string, rows map[string][]int) {
	all := must.M1(csv.NewReader(strings.NewReader(sentences)).ReadAll())[1:]
	rows = map[string][]int{}
	for i, r := range all {
		texts, names = append(texts, r[0]), append(names, r[1])
		rows[strings.Join(r[2:], "")] = append(rows[strings.Join(r[2:], "")], i)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, r := range all {
		label, _ := slices.BinarySearch(names, r[1])
		labels = append(labels, int32(label))
	}
	return texts, labels, names, rows
}
