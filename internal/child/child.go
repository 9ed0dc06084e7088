// Package child runs this program again, for work that may end a process.
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

// Command runs this program's binary, which chooses its work by argv[0]. It and its children end with ctx.
func Command(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if runtime.GOOS == "linux" {
		self = "/proc/self/exe" // valid even after a rebuild
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Args = append([]string{name}, args...)
	Group(cmd)
	cmd.Cancel = func() error { return KillGroup(cmd) }
	cmd.WaitDelay = time.Second
	return cmd, nil
}

func Death(waitErr error) error {
	if signal := Signal(waitErr); signal != 0 {
		return fmt.Errorf("the child process that tried it died of %s (%w)", SignalName(signal), waitErr)
	}
	return fmt.Errorf("the child process that tried it died: %w", waitErr)
}

// TextLimit is the default limit of a child's output, in bytes.
const TextLimit = 2 << 10

// Tail keeps the output's end and the first lines with the cause of death: errors in XLA's log, and messages of Go's
// runtime before its traces.
type Tail struct {
	Limit  int // bytes; default TextLimit
	kept   []byte
	line   []byte
	errors []string
	traced bool
}

var (
	// errors in XLA's log, of level E or F
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

// Errors returns the first lines, without XLA's time and place.
func (t *Tail) Errors() []string {
	t.endLine()
	return t.errors
}

func (t *Tail) String() string {
	if t.endLine(); t.traced {
		return strings.Join(t.errors, "\n")
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(t.kept)), "?")
}
