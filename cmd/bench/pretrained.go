package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
)

const (
	encoderFolder = "minilm"      // of sentence-transformers
	decoderFile   = "smollm.gguf" // a causal model
	textsFile     = "texts.csv"   // whose column text is first
)

func pretrainedModels(ctx context.Context, b *bench) error {
	if b.data == "" {
		return usageError{fmt.Errorf("pretrained needs -data, a folder with %s, %s and %s", encoderFolder, decoderFile, textsFile)}
	}
	for _, w := range []struct {
		variant string
		run     func(ctx context.Context, b *bench) error
	}{{"load", loadWeights}, {"embed", embedTexts}, {"finetune", finetune}, {"lora", trainLoRA}, {"generate", continueText}} {
		if !b.wants(w.variant) {
			continue
		}
		if err := w.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", w.variant, err)
		}
	}
	return nil
}

func (b *bench) pretrained(ctx context.Context, file string) (strategies.Strategy, *pretrained.Base, error) {
	r, err := b.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	base, err := pretrained.Open(ctx, filepath.Join(b.data, file))
	return strategies.Jit(r), base, err
}

// Peak memory of a model with its weights on the device, beyond the open runtime's, over the weights' size.
func loadWeights(ctx context.Context, b *bench) (err error) {
	on, base, err := b.pretrained(ctx, decoderFile)
	if err != nil {
		return err
	}
	before := rssMB()
	network := base.CausalLM()
	state, err := managed.New(on, network.Weights())
	if err != nil {
		return err
	}
	step := managed.TestStep(func(s *managed.Builder) {
		logits := network.Outputs(s.Scope().In("model"), s.Field)["logits"]
		s.Metric("largest", graph.ReduceAllMax(logits))
	})
	defer func() { err = errors.Join(err, step.Close(), state.Close()) }()
	_, logs, err := step.Step(ctx, state, data.Batch{Size: 1, Fields: []data.Field{data.Named("input_ids", []int32{1000}, 1, 1), data.Named("attention_mask", []bool{true}, 1, 1)}})
	if err != nil {
		return err
	}
	if _, err := logs.Float("largest"); err != nil {
		return err
	}
	size := float64(base.Describe().Sizes["parameters"]*base.DType.Size()) / (1 << 20)
	return b.emit(line{Workload: "pretrained", Variant: "load", Unit: "ratio", RSSMB: rssMB()}, []float64{float64(rssMB()-before) / size})
}

// Texts of similar lengths share a batch.
func embedTexts(ctx context.Context, b *bench) (err error) {
	on, base, err := b.pretrained(ctx, encoderFolder)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(b.data, textsFile))
	if err != nil {
		return err
	}
	rows, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	if err != nil {
		return err
	}
	n := cmp.Or(b.steps, 1024)
	if len(rows) <= n {
		return fmt.Errorf("%s has %d texts, expected %d", textsFile, len(rows)-1, n)
	}
	texts := make([]string, n)
	for i := range texts {
		texts[i] = rows[i+1][0]
	}
	size := cmp.Or(b.batch, 32)
	model, err := flaxlike.New(ctx, base.Embedder(), flaxlike.WithStrategy(on), flaxlike.WithBatchSize(size))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	embed := func() error {
		set, err := base.Set(text.Inputs(texts, 256))
		if err != nil {
			return err
		}
		_, err = pretrained.Predict(ctx, model, set)
		return err
	}
	if err := embed(); err != nil {
		return err
	}
	took, err := b.measure(ctx, b.repeats, embed)
	if err != nil {
		return err
	}
	return b.emit(line{Workload: "pretrained", Variant: "embed", Unit: "texts/s", Batch: size, CPU: took.cpu, RSSMB: rssMB()},
		took.each(func(s float64) float64 { return float64(n) / s }))
}

// All weights of a classifier of ten classes, of texts of 32 tokens.
func finetune(ctx context.Context, b *bench) error {
	on, base, err := b.pretrained(ctx, encoderFolder)
	if err != nil {
		return err
	}
	return b.trainPretrained(ctx, on, base.Classifier(10), "finetune", cmp.Or(b.batch, 32), 32, 5, func(step *managed.Builder, logits *graph.Node) *graph.Node {
		return losses.CrossEntropy(step.Field("y"), logits)
	})
}

// Additions of rank 8 to all dense layers, on texts of 64 tokens.
func trainLoRA(ctx context.Context, b *bench) error {
	on, base, err := b.pretrained(ctx, decoderFile)
	if err != nil {
		return err
	}
	network := base.CausalLM().LoRA(pretrained.LoRA{Rank: 8, Alpha: 16, Targets: []string{"all-linear"}})
	return b.trainPretrained(ctx, on, network, "lora", cmp.Or(b.batch, 4), 64, 2, func(step *managed.Builder, logits *graph.Node) *graph.Node {
		next := graph.Slice(step.Field("input_ids"), graph.AxisRange(), graph.AxisRange(1))
		return losses.CrossEntropy(next, graph.Slice(logits, graph.AxisRange(), graph.AxisRange(0, -1)))
	})
}

func (b *bench) trainPretrained(ctx context.Context, on strategies.Strategy, network *pretrained.Network, variant string, size, places, steps int, loss func(*managed.Builder, *graph.Node) *graph.Node) (err error) {
	ids, mask, types, y := make([]int32, size*places), make([]int32, size*places), make([]int32, size*places), make([]int32, size)
	for i := range ids {
		ids[i], mask[i] = int32(1000+7*i%20_000), 1
	}
	for i := range y {
		y[i] = int32(i % 10)
	}
	set, err := data.New(data.Named("input_ids", ids, size, places), data.Named("attention_mask", mask, size, places),
		data.Named("token_type_ids", types, size, places), data.Y(y, size))
	if err != nil {
		return err
	}
	state, err := managed.New(on, network.Weights(), managed.WithOptimizer(optim.New(1e-4, optim.Adam{})))
	if err != nil {
		return err
	}
	step := managed.TrainStep(func(s *managed.Builder) {
		s.Loss("loss", loss(s, network.Outputs(s.Scope().In("model"), s.Field)["logits"]))
	})
	defer func() { err = errors.Join(err, step.Close(), state.Close()) }()
	steps = cmp.Or(b.steps, steps)
	run := func(n int) error {
		_, err := loop.New(loop.On(loop.EachStep, step)).Run(ctx, state, set.Batches(size), loop.Until(loop.Steps(n)))
		return errors.Join(err, state.Wait())
	}
	if err := run(2); err != nil {
		return err
	}
	took, err := b.measure(ctx, b.repeats, func() error { return run(steps) })
	if err != nil {
		return err
	}
	return b.emit(line{Workload: "pretrained", Variant: variant, Unit: "ms/step", Batch: size, Steps: steps, CPU: took.cpu, RSSMB: rssMB()},
		took.each(func(s float64) float64 { return 1e3 * s / float64(steps) }))
}

// The likeliest tokens after a prompt of 16.
func continueText(ctx context.Context, b *bench) (err error) {
	on, base, err := b.pretrained(ctx, decoderFile)
	if err != nil {
		return err
	}
	network := base.CausalLM()
	state, err := managed.New(on, network.Weights())
	if err != nil {
		return err
	}
	generator, err := network.Generator(state, 1, 128)
	if err != nil {
		return errors.Join(err, state.Close())
	}
	defer func() { err = errors.Join(err, generator.Close(), state.Close()) }()
	prompt, tokens := make([]int32, 16), min(cmp.Or(b.steps, 64), 100)
	for i := range prompt {
		prompt[i] = int32(1000 + i)
	}
	run := func() error {
		n := 0
		for _, err := range generator.Generate(ctx, [][]int32{prompt}, pretrained.Generation{Most: tokens}) {
			if err != nil {
				return err
			}
			n++
		}
		if n < tokens {
			return fmt.Errorf("%d tokens, expected %d", n, tokens)
		}
		return nil
	}
	if err := run(); err != nil {
		return err
	}
	took, err := b.measure(ctx, b.repeats, run)
	if err != nil {
		return err
	}
	return b.emit(line{Workload: "pretrained", Variant: "generate", Unit: "tokens/s", Batch: 1, Steps: tokens, CPU: took.cpu, RSSMB: rssMB()},
		took.each(func(s float64) float64 { return float64(tokens) / s }))
}
