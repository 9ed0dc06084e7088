// Command lazo installs and checks the library's plugins, prints exported programs, manages folders of checkpoints, and
// starts jobs of several processes.
//
// Exit status: 0 success, 1 a failure or a problem found, 2 wrong usage, 130 after Ctrl-C. lazo run exits with the
// job's status: docs/processes.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/lazo-ml/lazo/loop"
)

const (
	failure = 1
	usage   = 2
)

type commands struct {
	Install installCommand   `cmd:"" help:"Download, check and install a PJRT plugin."`
	Doctor  doctorCommand    `cmd:"" help:"Say what is installed, whether it works and what to do if not."`
	HLO     hloCommand       `cmd:"" name:"hlo" help:"Print an exported program, with its cost and memory."`
	Plan    planCommand      `cmd:"" help:"Say what a step will cost on a machine that is not there."`
	Ckpt    ckptCommand      `cmd:"" help:"List, check, compare, prune, export and import checkpoints."`
	Model   modelCommand     `cmd:"" help:"Show and use saved models and models of the Hugging Face hub."`
	Serve   serveCommand     `cmd:"" help:"Serve saved models over HTTP, by the Open Inference Protocol, or a model of the hub to OpenAI's clients."`
	Run     runCommand       `cmd:"" help:"Start a program as the ranks of a job on this machine."`
	Runs    runsCommand      `cmd:"" help:"Compare the recorded runs of a folder: settings, status, best and last values."`
	Board   boardCommand     `cmd:"" help:"Show the runs of a folder on a page that follows them."`
	Bench   benchDataCommand `cmd:"" name:"bench-data" help:"Say how fast a folder of images can be read, stage by stage."`
	Version versionCommand   `cmd:"" help:"Print versions."`
}

type session struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
	args           []string
	child          bool
}

func main() {
	ctx, status := interruptible(context.Background())
	code := run(session{ctx: ctx, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, args: os.Args[1:], child: beChild()})
	if ctx.Err() != nil {
		code = status()
	}
	os.Exit(code)
}

func run(s session) int {
	var c commands
	parser, err := kong.New(&c, kong.Name("lazo"), kong.Writers(s.stdout, s.stderr),
		kong.Description("lazo trains models on XLA. This command manages plugins, checkpoints and models, serves models, plans steps and starts jobs."), kong.Bind(s))
	if err != nil {
		fmt.Fprintln(s.stderr, "lazo:", err)
		return failure
	}
	parsed, err := parser.Parse(dashes(s.args))
	if err != nil {
		text := plainLines(err.Error())
		if misplaced := c.Plan.misplaced(); misplaced != "" {
			text += "; " + misplaced
		}
		fmt.Fprintf(s.stderr, "lazo: %s (lazo --help lists the commands)\n", text)
		return usage
	}
	err = parsed.Run(s)
	ended := exitCode(0)
	switch {
	case errors.As(err, &ended):
		return int(ended)
	case errors.Is(err, errProblem): // already printed
		return failure
	case err != nil && s.ctx.Err() != nil:
		fmt.Fprintln(s.stderr, "lazo: interrupted")
		return failure
	case err != nil:
		fmt.Fprintln(s.stderr, "lazo:", plainLines(err.Error()))
		return failure
	}
	return 0
}

// interruptible cancels the context as loop.WithSignals does; status is 128 plus the signal.
func interruptible(parent context.Context) (ctx context.Context, status func() int) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		received := <-signals
		signal.Stop(signals)
		number, _ := received.(syscall.Signal)
		cancel(&loop.SignalError{Signal: number})
	}()
	return ctx, func() int {
		if by, ok := errors.AsType[*loop.SignalError](context.Cause(ctx)); ok {
			return by.ExitCode()
		}
		return 0
	}
}
