package main

import (
	"context"
	"os"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/train"
)

func linear(b *managed.Builder) {
	logits := nn.Dense{Units: 10}.Apply(b.Scope(), graph.Reshape(b.Field("x"), -1, 64))
	b.Loss("loss", losses.CrossEntropy(b.Field("y"), logits))
	b.Metric("accuracy", losses.Accuracy(b.Field("y"), logits))
}

type problem struct {
	state   *managed.State
	batches data.Batches
	test    data.Batches
	epoch   loop.Steps
	until   loop.Steps
}

var trainStep, testStep = managed.TrainStep(linear), managed.TestStep(linear)

func inLoop(ctx context.Context, p problem) *loop.History {
	testing := loop.Evaluate("test", testStep, p.test)
	training := loop.New(loop.On(loop.EachStep, trainStep), testing.On(loop.Every(p.epoch)))
	result := must.M1(training.Run(ctx, p.state, p.batches, loop.Until(p.until), callbacks.ProgressBar(os.Stderr)))
	return result.History
}

func byHand(ctx context.Context, p problem) *loop.History {
	history, report := &loop.History{}, loop.Report{}
	bar := must.M1(callbacks.ProgressBar(os.Stderr).Start(loop.Beginning{}))
	for pass, err := range loop.Over(p.batches, loop.Until(p.until)) {
		must.M(err)
		_, logs := must.M2(trainStep.Step(ctx, p.state, pass.Batch))
		if pass.Due(loop.Every(p.epoch)) {
			for b, err := range p.test.All() {
				must.M(err)
				_, tested := must.M2(testStep.Step(ctx, p.state, b))
				logs.Merge(tested.Suffix("test"))
			}
		}
		history.Commit(pass.Elapsed, logs, pass.Samples())
		report = pass.Report(logs, history)
		must.M(bar.Watch(ctx, report))
	}
	must.M(bar.End(ctx, loop.Ending{Report: report}))
	return history
}

func predefined(ctx context.Context, p problem) *loop.History {
	training := train.Loop[*managed.State, data.Batch]{
		Step:  trainStep,
		Epoch: p.epoch,
		Tests: []loop.Evaluation[*managed.State, data.Batch]{loop.Evaluate("test", testStep, p.test)},
	}
	result := must.M1(training.Run(ctx, p.state, p.batches, loop.Until(p.until), callbacks.ProgressBar(os.Stderr)))
	return result.History
}
