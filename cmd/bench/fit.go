package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	trainloop "github.com/lazo-ml/lazo/train"
	"github.com/lazo-ml/lazo/xla"
)

// Fit and a handwritten train.Loop on the digits, in turns, in us per step. Variant digits is the peers' convolutional
// network by Fit with three seeds.
func fit(ctx context.Context, b *bench) error {
	r, err := b.open(ctx)
	if err != nil {
		return err
	}
	if b.wants("digits") {
		if err := fitDigits(ctx, b, r); err != nil {
			return err
		}
	}
	if !b.wants("step") {
		return nil
	}
	set, test, err := data.Digits()
	if err != nil {
		return err
	}
	const batch, epochs = 32, 20
	above, err := fitModel(ctx, r, 0, nn.Flatten{}, nn.Dense{Units: 64}, nn.Activation("relu"), nn.Dense{Units: 10})
	if err != nil {
		return err
	}
	below, err := newByHand(r)
	if err != nil {
		return errors.Join(err, above.Close())
	}
	fits := func() error {
		_, err := above.Fit(ctx, set, flaxlike.Fit{Epochs: epochs, Validation: test, Output: io.Discard})
		return err
	}
	hand := func() error { return below.run(ctx, set, test, batch, epochs) }
	took := map[string][]float64{}
	steps := float64(epochs * (set.Len() / batch))
	for i := range b.repeats + 1 {
		for _, way := range []struct {
			name string
			run  func() error
		}{{"fit", fits}, {"train", hand}} {
			if err := b.turn(ctx); err != nil {
				return err
			}
			start := time.Now()
			if err := way.run(); err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
			if i > 0 {
				took[way.name] = append(took[way.name], 1e6*time.Since(start).Seconds()/steps)
			}
		}
	}
	if err := errors.Join(above.Close(), below.close()); err != nil {
		return err
	}
	var ratios []float64
	for i := range took["fit"] {
		ratios = append(ratios, took["fit"][i]/took["train"][i])
	}
	took["ratio"] = ratios
	for _, name := range []string{"fit", "train", "ratio"} {
		unit := "us/step"
		if name == "ratio" {
			unit = "fit/train"
		}
		if err := b.emit(line{Workload: "fit", Variant: name, Unit: unit, Batch: batch, Steps: int(steps), Epochs: epochs}, took[name]); err != nil {
			return err
		}
	}
	return nil
}

func fitModel(ctx context.Context, r *xla.Runtime, seed int64, network ...nn.Layer) (*flaxlike.Model, error) {
	return flaxlike.New(ctx, nn.Sequential(network),
		flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"), flaxlike.WithSeed(seed),
		flaxlike.WithStrategy(strategies.Jit(r)))
}

type byHand struct {
	state       *managed.State
	train, test *managed.Stepper
}

func newByHand(r *xla.Runtime) (h byHand, err error) {
	if h.state, err = managed.New(strategies.Jit(r), managed.WithOptimizer(optim.New(0.001, optim.Adam{}))); err != nil {
		return h, err
	}
	crossEntropy, err := losses.Named("sparse_categorical_crossentropy")
	if err != nil {
		return h, errors.Join(err, h.state.Close())
	}
	report := func(b *managed.Builder) {
		x := b.Field("x")
		x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
		x = activation.Relu(layers.Dense(b.Scope().In("0"), x, true, 64))
		logits := layers.Dense(b.Scope().In("1"), x, true, 10)
		loss := crossEntropy(b.Field("y"), logits)
		b.Loss("loss", loss)
		b.Mean("avg_loss", loss)
		b.Track("accuracy", metrics.Accuracy(), nil, b.Field("y"), logits)
	}
	h.train, h.test = managed.TrainStep(report), managed.TestStep(report)
	return h, nil
}

func (h byHand) run(ctx context.Context, set, test *data.Set, batch, epochs int) error {
	epoch := loop.Steps(set.Len() / batch)
	padded := data.Map(test.Batches(batch, data.Kept).All(), func(b data.Batch) (data.Batch, error) { return data.Pad(b, batch) })
	training := trainloop.Loop[*managed.State, data.Batch]{Step: h.train, Epoch: epoch, Reset: managed.Reset,
		Tests: []loop.Evaluation[*managed.State, data.Batch]{loop.Evaluate("val", h.test, loop.Data[data.Batch](padded))}}
	_, err := training.Run(ctx, h.state, set.Batches(batch, data.Shuffle(0)),
		loop.Until(epoch*loop.Steps(epochs)), loop.Keep(loop.Every(epoch)))
	return err
}

func (h byHand) close() error { return errors.Join(h.train.Close(), h.test.Close(), h.state.Close()) }

func fitDigits(ctx context.Context, b *bench, r *xla.Runtime) error {
	set, test, err := data.Digits()
	if err != nil {
		return err
	}
	const epochs = 10
	var accuracies, seconds []float64
	sum := 0.0
	for seed := range int64(3) {
		start := time.Now()
		relu := nn.Activation("relu")
		m, err := fitModel(ctx, r, seed, nn.Conv{Channels: 16, Window: []int{3}}, relu, nn.MeanPool{Window: 2}, nn.Conv{Channels: 32, Window: []int{3}}, relu, nn.MeanPool{Window: 2},
			nn.Flatten{}, nn.Dense{Units: 64}, relu, nn.Dense{Units: 10})
		if err != nil {
			return err
		}
		_, err = m.Fit(ctx, set, flaxlike.Fit{Epochs: epochs, Output: io.Discard})
		var found map[string]float64
		if err == nil {
			found, err = m.Evaluate(ctx, test)
		}
		if err = errors.Join(err, m.Close()); err != nil {
			return err
		}
		seconds = append(seconds, time.Since(start).Seconds())
		accuracies = append(accuracies, found["accuracy"])
		sum += found["accuracy"]
	}
	return b.emit(line{Workload: "fit", Variant: "digits", Unit: "test accuracy", Mean: sum / 3, Batch: 32, Epochs: epochs,
		FirstS: seconds[0], WarmS: max(seconds[1], seconds[2]), RSSMB: rssMB()}, accuracies)
}
