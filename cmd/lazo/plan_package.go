package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/lazo-ml/lazo/internal/child"
	"github.com/lazo-ml/lazo/internal/planned"
	"github.com/lazo-ml/lazo/xla/plan"
)

const manifest = "manifest.json"

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func isPackage(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return false
	}
	if exists(filepath.Join(path, manifest)) {
		return false
	}
	files, err := filepath.Glob(filepath.Join(path, "*.go"))
	return err == nil && len(files) > 0
}

// program is built once and run per target: lowering depends on the machine.
type program struct {
	binary, path string
	args         []string
	dir          string
	verbose      bool
}

func buildProgram(ctx context.Context, path string, args []string, verbose bool) (_ *program, err error) {
	// go build of other packages succeeds without an executable.
	list := exec.CommandContext(ctx, "go", "list", "-f", "{{.Name}}", ".")
	list.Dir = path
	name, err := list.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return nil, fmt.Errorf("go list %s: %w: %s", path, err, bytes.TrimSpace(failed.Stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", path, err)
	}
	if name := string(bytes.TrimSpace(name)); name != "main" {
		return nil, fmt.Errorf("%s has package %s, which is not a program: expected package main, or an exported folder", path, name)
	}
	dir, err := os.MkdirTemp("", "lazo-plan-*")
	if err != nil {
		return nil, err
	}
	p := &program{binary: filepath.Join(dir, "program"), path: path, args: args, dir: dir, verbose: verbose}
	var said child.Tail
	build := exec.CommandContext(ctx, "go", "build", "-o", p.binary, ".")
	build.Dir, build.Stdout, build.Stderr = path, &said, &said
	if err := build.Run(); err != nil {
		return nil, errors.Join(fmt.Errorf("build %s: %w: %s", path, err, said.String()), p.close())
	}
	return p, nil
}

func (p *program) close() error { return os.RemoveAll(p.dir) }

// endLimit limits a program's time after its step was written.
const endLimit = 20 * time.Second

func (p *program) step(s session, t plan.Target, root string, limit time.Duration) (plan.Step, error) {
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	file := filepath.Join(p.dir, "step")
	if err := os.RemoveAll(file); err != nil {
		return plan.Step{}, err
	}
	order, err := planned.Order{Plugin: t.Compiler(), Topology: t.Topology(), Root: root, File: file}.Environment()
	if err != nil {
		return plan.Step{}, err
	}
	var said child.Tail
	cmd := exec.CommandContext(ctx, p.binary, p.args...)
	cmd.Env = append(os.Environ(), order)
	child.Group(cmd)
	cmd.Cancel = func() error { return child.KillGroup(cmd) }
	cmd.WaitDelay = time.Second
	cmd.Stdout, cmd.Stderr = &said, &said
	if p.verbose {
		cmd.Stdout, cmd.Stderr = s.stderr, s.stderr
	}
	if err := cmd.Start(); err != nil {
		return plan.Step{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	err = p.wait(ended, file, cancel)
	found, readErr := planned.Read(file)
	switch {
	case readErr == nil:
		return plan.Step{Name: filepath.Base(p.path) + ": " + found.Name, Text: found.Text, Batch: found.Batch, Inputs: found.Inputs,
			Where: func(line int) string { return found.Where[line] }}, nil
	case !errors.Is(readErr, os.ErrNotExist):
		return plan.Step{}, readErr
	case s.ctx.Err() != nil:
		return plan.Step{}, s.ctx.Err()
	case ctx.Err() != nil:
		return plan.Step{}, fmt.Errorf("%s: no training step after %v: give it more with --timeout%s", p.path, limit, after(said.String()))
	case err != nil:
		return plan.Step{}, fmt.Errorf("%s: it ended before a training step (%w)%s", p.path, err, last(said.String()))
	}
	return plan.Step{}, fmt.Errorf("%s: it made no training step%s", p.path, last(said.String()))
}

func (p *program) wait(ended <-chan error, file string, end func()) error {
	written := time.Time{}
	for {
		select {
		case err := <-ended:
			return err
		case <-time.After(100 * time.Millisecond):
		}
		if _, err := os.Stat(file); err == nil && written.IsZero() {
			written = time.Now()
		}
		if !written.IsZero() && time.Since(written) > endLimit {
			end()
		}
	}
}

func last(said string) string {
	if said == "" {
		return ""
	}
	return "\nits last output:\n" + said
}
