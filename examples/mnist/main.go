// Command mnist trains a small convolutional network on handwritten digits, in the second form with four processes,
// each with a quarter of every batch. A missing PJRT plugin is installed.
//
//	go run ./examples/mnist
//	go run ./cmd/lazo run -np 4 go run ./examples/mnist
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/callbacks/tensorboard"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func main() {
	ctx, stop := loop.WithSignals(context.Background())
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

type config struct {
	data, plugin string
	epochs       int
	batch        int
	rate         float64
	seed         int64
	resume       string
	tensorboard  string
	quiet        bool
}

// 2 for a wrong command line, 1 for other errors
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "mnist: %v (-h lists the flags)\n", err)
		return 2
	}
	err = c.train(ctx, stdout, stderr)
	if err == nil {
		return 0
	}
	code := 1
	var signalled *loop.SignalError
	if errors.As(context.Cause(ctx), &signalled) {
		err, code = signalled, signalled.ExitCode() // not its consequence
	}
	fmt.Fprintf(stderr, "mnist: %v\n", err)
	return code
}

func parse(args []string, stdout io.Writer) (config, error) {
	c := config{}
	flags := flag.NewFlagSet("mnist", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&c.data, "data", "digits", "digits (8x8, in the repository), mnist (28x28, downloaded), a `folder` with the four IDX files, or one with PNG and JPEG files in a folder for each class")
	flags.IntVar(&c.epochs, "epochs", 10, "passes over the training data")
	flags.IntVar(&c.batch, "batch", 32, "examples in a step")
	flags.Float64Var(&c.rate, "lr", 1e-3, "learning rate of Adam")
	flags.Int64Var(&c.seed, "seed", 0, "of the initial parameters and of the order of the data")
	flags.StringVar(&c.plugin, "plugin", xla.CPU, "cpu, cuda, tpu, go, or the `path` of a PJRT plugin")
	flags.StringVar(&c.resume, "resume", "", "a `folder` of checkpoints: continue from its newest one, if any, and save there")
	flags.StringVar(&c.tensorboard, "tensorboard", "", "a `folder` for event files of TensorBoard")
	flags.BoolVar(&c.quiet, "quiet", false, "no progress, only the result")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stdout, "Usage: go run ./examples/mnist [flags]")
		flags.SetOutput(stdout)
		flags.PrintDefaults()
	}
	if err != nil {
		return c, err
	}
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case c.epochs < 1:
		err = fmt.Errorf("-epochs must be at least 1, got %d", c.epochs)
	case c.batch < 1:
		err = fmt.Errorf("-batch must be at least 1, got %d", c.batch)
	case !(c.rate > 0): // also NaN
		err = fmt.Errorf("-lr must be positive, got %v", c.rate)
	}
	return c, err
}

func (c config) train(ctx context.Context, stdout, stderr io.Writer) (err error) {
	job, err := dist.Join(ctx) // of one process, unless a launcher has started several
	if err != nil {
		return err
	}
	defer func() { err = job.Leave(err) }()
	if job.Rank() > 0 {
		stdout, stderr = io.Discard, io.Discard
	}
	progress := stderr
	if c.quiet {
		progress = nil
	}
	train, test, err := load(ctx, c.data, stderr)
	if err != nil {
		return err
	}
	if train.Len() < c.batch {
		return fmt.Errorf("-batch %d is more than the %d training examples", c.batch, train.Len())
	}
	runtime, err := xla.Open(ctx, c.plugin, xla.Across(job), xla.InstallIfMissing(func(line string) { fmt.Fprintln(stderr, line) }))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runtime.Close()) }()

	strategy, err := strategies.DataParallel(runtime, strategies.Parallel{Pad: true})
	if err != nil {
		return err
	}
	start := time.Now()
	state, err := managed.New(strategy, managed.WithOptimizer(optim.New(c.rate, optim.Adam{})), managed.WithSeed(c.seed))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.Close()) }()

	epoch := loop.Steps(train.Len() / c.batch)
	steps := loop.Steps(c.epochs) * epoch
	options := []loop.Option{loop.Until(steps), loop.Keep(loop.At(steps)), callbacks.ProgressBar(progress, callbacks.Bar{Epoch: epoch})}
	var stages *data.Stages // what steps wait for, with images from files
	if train.Mapped() {
		stages = new(data.Stages)
		options[2] = callbacks.ProgressBar(progress, callbacks.Bar{Epoch: epoch, Stages: stages.All()})
	}
	if c.resume != "" {
		options = append(options, c.resuming(stderr))
	}
	if c.tensorboard != "" {
		options = append(options, tensorboard.Write(c.tensorboard, loop.Every(loop.Steps(10))))
	}
	batches := train.Batches(c.batch, append(dataOrder(c), data.Timed(stages))...)
	training := loop.New(loop.On(loop.EachStep, trainStep))
	result, err := training.Run(ctx, state, batches, options...)
	if err != nil {
		if result.Reason == loop.Cancelled {
			fmt.Fprintf(stderr, "stopped after %v of %v, in %.1f s\n", result.Elapsed.Steps, steps, result.Elapsed.Time.Seconds())
		}
		return err
	}
	accuracy, err := evaluate(ctx, state, test)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "test accuracy: %.3f (seconds: %.1f)\n", accuracy, time.Since(start).Seconds())
	return err
}
