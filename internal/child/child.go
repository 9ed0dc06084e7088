// Package child runs this program once more, for work that may end a process.
package child

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// Command is this program's own binary, which knows by argv[0] what to do. It and its children end with ctx.
func Command(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if runtime.GOOS == "linux" {
		self = "/proc/self/exe" // still this program after a rebuild replaced the file
	}
	cmd := exec.CommandContext(ctx, self) // our own binary
	cmd.Args = append([]string{name}, args...)
	Group(cmd)
	cmd.Cancel = func() error { return KillGroup(cmd) }
	cmd.WaitDelay = time.Second
	return cmd, nil
}

// Death describes how a child ended without an answer.
func Death(waitErr error) error {
	if signal := Signal(waitErr); signal != 0 {
		return fmt.Errorf("the child process that tried it died of %s (%w)", SignalName(signal), waitErr)
	}
	return fmt.Errorf("the child process that tried it died: %w", waitErr)
}

// TextLimit is how much is kept of what a child says, in bytes.
const TextLimit = 2 << 10

// Tail keeps the last of what is written to it, and the first lines that say why it ends: errors of XLA's log, and what
// Go's runtime writes before its traces.
type Tail struct {
	Limit  int // how many bytes; 0 is TextLimit
	kept   []byte
	line   []byte // the one that is being written, cut to the limit
	errors []string
	traced bool // they are Go's
}

var (
	// logged is an error in XLA's log: its first letter is the level, E or F.
	logged = regexp.MustCompile(`^[EF]\d{4} [^\]]*\] (.*)`)
	traced = regexp.MustCompile(`^((?:fatal error|panic|runtime|runtime/cgo|SIG[A-Z]+): .*)`)
)

func (t *Tail) Write(p []byte) (int, error) {
	for _, b := range p {
		if b == '\n' {
			t.endLine()
		} else if len(t.line) < TextLimit {
			t.line = append(t.line, b)
		}
	}
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - cmp.Or(t.Limit, TextLimit); extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(p), nil
}

func (t *Tail) endLine() {
	for _, kind := range []*regexp.Regexp{logged, traced} {
		if found := kind.FindSubmatch(t.line); found != nil && len(t.errors) < 4 {
			t.errors = append(t.errors, strings.ToValidUTF8(string(found[1]), "?"))
			t.traced = t.traced || kind == traced
		}
	}
	t.line = t.line[:0]
}

// Errors are those first lines, without XLA's time and place.
func (t *Tail) Errors() []string {
	t.endLine()
	return t.errors
}

// String is the end of the output, or the first lines of a message of Go's runtime, which ends in a trace.
func (t *Tail) String() string {
	if t.endLine(); t.traced {
		return strings.Join(t.errors, "\n")
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(t.kept)), "?")
}
