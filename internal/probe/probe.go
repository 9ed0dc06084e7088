package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/internal/child"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

const DefaultTimeout = 60 * time.Second

// bytes
const answerLimit = 1 << 20

type Report struct {
	Version         pjrt.Version
	Platform        string // "cpu", "cuda", "tpu", …
	PlatformVersion string
	Devices         []string
}

// Check is [Run] for install.Options.Probe.
func Check(ctx context.Context, path string) error {
	_, err := Run(ctx, path)
	return err
}

// Run loads the plugin at path in a child process, makes a client, lists devices and adds two numbers on the first. At
// ctx's end, or after [DefaultTimeout] without a deadline, it kills the child's process group.
//
// [ErrFlags] means that the plugin works without XLA_FLAGS. Errors are [*Error], or wrap a cancelled ctx's.
func Run(ctx context.Context, path string) (Report, error) {
	report, output, err := run(ctx, path, os.Getenv)
	if failed := (*Error)(nil); os.Getenv(flags) != "" && errors.As(err, &failed) {
		without := func(name string) string {
			if name == flags {
				return ""
			}
			return os.Getenv(name)
		}
		if _, _, again := run(ctx, path, without); again == nil {
			failed.Kind = ErrFlags
			if said := output.Errors(); len(said) > 0 {
				failed.Cause, failed.Stderr = errors.New(explain(said)), ""
			}
		}
	}
	return report, err
}

const flags = "XLA_FLAGS"

func explain(said []string) string {
	text := strings.Join(said, "; ")
	if _, names, ok := strings.Cut(text, "in "+flags+": "); ok && strings.HasPrefix(text, "Unknown flag") {
		return fmt.Sprintf("%s names %s, which this plugin does not know", flags, names)
	}
	return text
}

func run(ctx context.Context, path string, getenv func(string) string) (Report, *child.Tail, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultTimeout)
		defer cancel()
	}
	fail := &Error{Path: path, Stage: StageStart, Kind: ErrUnknown}
	var stderr child.Tail
	reader, writer, err := os.Pipe()
	if err != nil {
		fail.Cause = err
		return Report{}, &stderr, fail
	}
	defer reader.Close()
	cmd, err := command(ctx, path, getenv)
	if err == nil {
		cmd.Stderr = &stderr
		cmd.ExtraFiles = []*os.File{writer}
		err = cmd.Start()
	}
	writer.Close()
	if err != nil {
		fail.Cause = err
		return Report{}, &stderr, fail
	}
	// A process that outlives the child may hold the pipe.
	stop := context.AfterFunc(ctx, func() { _ = reader.SetReadDeadline(time.Now()) })
	last, readErr := listen(reader, fail)
	stop()
	if !errors.Is(readErr, io.EOF) {
		_ = cmd.Cancel() // it has answered, or writes too much
	}
	waitErr := cmd.Wait()
	if last.Report != nil {
		return *last.Report, &stderr, nil
	}
	fail.Stderr = stderr.String()
	switch {
	case last.Failure != nil:
		last.Failure.fill(fail)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		fail.Kind, fail.Cause = ErrTimeout, ctx.Err()
	case ctx.Err() != nil:
		return Report{}, &stderr, fmt.Errorf("probe: %s: %w", path, ctx.Err())
	case waitErr != nil && errors.Is(readErr, io.EOF):
		fail.Kind, fail.Cause = ErrDamaged, child.Death(waitErr)
		if noMemory.MatchString(fail.Stderr) {
			fail.Kind = pjrt.ErrOutOfMemory
		} else if limit := addressLimit(); limit < 1<<40 {
			fail.Kind, fail.Cause = ErrUnknown, fmt.Errorf("%w, where it may have %d MiB of addresses (ulimit -v)", fail.Cause, limit>>20)
		}
	default:
		fail.Kind, fail.Cause = ErrDamaged, fmt.Errorf("the child's answer cannot be read: %w", readErr)
	}
	return Report{}, &stderr, fail
}

func command(ctx context.Context, path string, getenv func(string) string) (*exec.Cmd, error) {
	deadline, _ := ctx.Deadline()
	cmd, err := child.Command(ctx, childName, path, strconv.FormatInt(time.Until(deadline).Milliseconds(), 10))
	if err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), flags+"="+getenv(flags))
	for name, value := range pjrt.Environment(path, getenv) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	// A lower level could hide XLA's errors about flags.
	const level = "TF_CPP_MIN_LOG_LEVEL"
	if said := getenv(level); said != "0" && said != "1" {
		cmd.Env = append(cmd.Env, level+"=2")
	}
	return cmd, nil
}

func listen(from io.Reader, fail *Error) (last message, err error) {
	limited := &io.LimitedReader{R: from, N: answerLimit}
	lines := json.NewDecoder(limited)
	for {
		var line message
		err := lines.Decode(&line)
		switch {
		case limited.N <= 0:
			return message{}, fmt.Errorf("it has more than %d bytes", answerLimit)
		case err != nil:
			return message{}, err
		}
		if line.Report != nil || line.Failure != nil {
			return line, nil
		}
		fail.Stage = line.Stage
	}
}
