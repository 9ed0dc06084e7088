package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/lazo-ml/lazo/internal/child"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

// the argv[0] of the child that handles a foreign file, which may crash or block the plugin
const childName = "lazo: child"

// A child dies at once on a crash: its parent reports the error.
func beChild() bool {
	if os.Args[0] != childName {
		return false
	}
	pjrt.DieBySignal()
	return true
}

func inChild(s session, limit time.Duration, what string) error {
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	cmd, err := child.Command(ctx, childName, s.args...)
	if err != nil {
		return err
	}
	said := child.Tail{Limit: errorLimit}
	cmd.Stdout, cmd.Stderr = s.stdout, &said
	err = cmd.Run()
	last := said.String()
	switch {
	case s.ctx.Err() != nil:
		return s.ctx.Err()
	case ctx.Err() != nil:
		return fmt.Errorf("%s: no end after %v: give it more with --timeout%s", what, limit, after(last))
	case child.Signal(err) == syscall.SIGPIPE:
		return errProblem // like head
	case child.Signal(err) != 0:
		return fmt.Errorf("%s: it crashed the plugin, which died of %s%s", what, child.SignalName(child.Signal(err)), after(last))
	case err != nil && strings.HasPrefix(last, "lazo: "):
		_, err := fmt.Fprintln(s.stderr, plainLines(last))
		return errors.Join(errProblem, err)
	case err != nil:
		return fmt.Errorf("%s: it ended the plugin (%w)%s", what, err, after(last))
	}
	_, err = io.WriteString(s.stderr, escaped(last, "\n\t"))
	return err
}

const errorLimit = 1 << 16

func after(last string) string {
	if last == "" {
		return ""
	}
	if extra := len(last) - child.TextLimit; extra > 0 {
		last = strings.ToValidUTF8(last[extra:], "")
	}
	return "\nlast output of the plugin:\n" + last
}
