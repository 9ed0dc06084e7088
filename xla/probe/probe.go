// Package probe finds out whether a PJRT plugin works, in a child process, so
// that a damaged library can never end the program that asks.
//
// The child is the program's own binary, started once more: a program that
// links this package needs no other file. Its init function sees a reserved
// argv[0], does the check in place of the program, and exits before main runs.
// Other packages' init functions may run in the child too.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/lazo-ml/lazo/xla/pjrt"
)

// DefaultTimeout ends a check when the context sets no deadline.
const DefaultTimeout = 60 * time.Second

// answerLimit bounds what the child may say, in bytes.
const answerLimit = 1 << 20

// Report is what a working plugin says of itself.
type Report struct {
	Version         pjrt.Version
	Platform        string // "cpu", "cuda", "tpu", …
	PlatformVersion string
	Devices         []string // one description for each device
}

// Run loads the plugin at path in a child process, makes a client, lists the
// devices and adds two numbers on the first. It ends when ctx does, after
// [DefaultTimeout] at the latest if ctx has no deadline, and takes the child
// and its process group with it.
//
// Errors are of type [*Error], except when ctx was cancelled: then ctx's error
// is wrapped.
func Run(ctx context.Context, path string) (Report, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultTimeout)
		defer cancel()
	}
	fail := &Error{Path: path, Stage: StageStart, Kind: ErrUnknown}
	reader, writer, err := os.Pipe()
	if err != nil {
		fail.Cause = err
		return Report{}, fail
	}
	defer reader.Close()
	var stderr tail
	cmd, err := command(ctx, path)
	if err == nil {
		cmd.Stderr = &stderr
		cmd.ExtraFiles = []*os.File{writer}
		err = cmd.Start()
	}
	writer.Close()
	if err != nil {
		fail.Cause = err
		return Report{}, fail
	}
	// A process that outlives the child may hold the pipe open.
	stop := context.AfterFunc(ctx, func() { _ = reader.SetReadDeadline(time.Now()) })
	last, readErr := listen(reader, fail)
	stop()
	if !errors.Is(readErr, io.EOF) {
		_ = cmd.Cancel() // it has given its answer, or nobody listens any more
	}
	waitErr := cmd.Wait()
	if last.Report != nil {
		return *last.Report, nil
	}
	fail.Stderr = stderr.String()
	switch {
	case last.Failure != nil:
		last.Failure.fill(fail)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		fail.Kind, fail.Cause = ErrTimeout, ctx.Err()
	case ctx.Err() != nil:
		return Report{}, fmt.Errorf("probe: %s: %w", path, ctx.Err())
	case waitErr != nil && errors.Is(readErr, io.EOF):
		fail.Kind, fail.Cause = ErrDamaged, death(waitErr)
	default:
		fail.Kind, fail.Cause = ErrDamaged, fmt.Errorf("the child's answer cannot be read: %w", readErr)
	}
	return Report{}, fail
}

// command is the child: this binary under the reserved name.
func command(ctx context.Context, path string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if runtime.GOOS == "linux" {
		self = "/proc/self/exe" // still this program after a rebuild replaced the file
	}
	deadline, _ := ctx.Deadline()
	cmd := exec.CommandContext(ctx, self) // our own binary
	cmd.Args = []string{childName, path, strconv.FormatInt(time.Until(deadline).Milliseconds(), 10)}
	cmd.Env = os.Environ()
	for name, value := range pjrt.Environment(path, os.Getenv) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd, nil
}

// listen reads the child's lines up to the last one, and notes the stages.
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
