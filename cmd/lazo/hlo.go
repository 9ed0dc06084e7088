package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lazo-ml/lazo/internal/regular"
	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/export"
)

type hloCommand struct {
	Path      string `arg:"" help:"Folder that was exported, or file with a program in StableHLO (.mlir)."`
	Optimized bool   `help:"Print the program as XLA has it after its optimizations (HLO) instead."`
	Plugin    string `default:"cpu" help:"Plugin to compile for: cpu, cuda, tpu or the path of a library."`
	Prefix    string `placeholder:"DIR" help:"Folder that plugins are installed in."`

	Timeout time.Duration `default:"10m" help:"How long it may take."`
}

// Run prints the program, then the compiler's estimates as comments: a valid program. It prints nothing if
// compilation fails.
func (c hloCommand) Run(s session) (err error) {
	if !s.child {
		return inChild(s, c.Timeout, c.Path)
	}
	time.AfterFunc(c.Timeout+time.Second, func() { os.Exit(failure) }) // the parent may have exited
	name, text, err := readProgram(c.Path)
	if err != nil {
		return err
	}
	runtime, err := xla.Open(s.ctx, c.Plugin, xla.Root(c.Prefix))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runtime.Close()) }()
	program, err := runtime.CompileStableHLO(s.ctx, name, text, xla.Built{})
	if err != nil {
		return oneLine(err)
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	if c.Optimized {
		if text, err = runtime.Optimized(name, text); err != nil {
			return oneLine(err)
		}
	}
	fmt.Fprintln(s.stdout, plainLines(text))
	return printEstimates(s.stdout, program)
}

const fileLimit = 1 << 30

func readProgram(path string) (name, text string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", "", err
	}
	if info.IsDir() {
		p, err := export.Load(path)
		if err != nil {
			return "", "", err
		}
		return p.Name, p.Text, nil
	}
	data, err := regular.Read(path, fileLimit)
	if err != nil {
		return "", "", fmt.Errorf("%w: expected a program in StableHLO, or an exported folder", err)
	}
	if !utf8.Valid(data) {
		err = fmt.Errorf("%s is not text: expected a program in StableHLO", path)
	}
	return filepath.Base(path), string(data), err
}

// for errors that quote the program
func oneLine(err error) error { return errors.New(strings.Join(strings.Fields(err.Error()), " ")) }

var countedBy = map[bool]string{false: "counted by the plugin", true: "counted by lazo"}

func printEstimates(w io.Writer, program *xla.Program) error {
	comment := func(name, format string, args ...any) { line(w, "// "+name, format, args...) }
	switch cost, err := program.Cost(); {
	case errors.Is(err, xla.ErrUnimplemented):
		comment("cost", "not reported by the plugin, and the optimized program cannot be counted")
	case err != nil:
		return err
	default:
		comment("cost", "%.0f FLOPs, %.0f transcendentals, %.0f bytes accessed (%s)", cost.FLOPs, cost.Transcendentals, cost.BytesAccessed, countedBy[cost.Counted])
		for _, text := range cost.Uncounted {
			comment("not counted", "%s", text)
		}
		for _, text := range cost.Unknown {
			comment("loop counted once", "%s", text)
		}
	}
	switch m, err := program.Memory(); {
	case errors.Is(err, xla.ErrUnimplemented):
		comment("memory", "not reported by the plugin")
	case err != nil:
		return err
	default:
		comment("memory", "%d bytes: arguments %d, outputs %d (%d in place of arguments), temporary %d",
			m.Arguments+m.Outputs-m.Aliased+m.Temporary, m.Arguments, m.Outputs, m.Aliased, m.Temporary)
	}
	return nil
}
