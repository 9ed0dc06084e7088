package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/export"
	"github.com/lazo-ml/lazo/xla/plan"
)

type planCommand struct {
	For     []string `required:"" placeholder:"TARGET" help:"Machines, such as v5e:4x4 (a grid of chips) or h100:8 (devices; 64 are 8 hosts of 8)."`
	Devices []int    `placeholder:"N" help:"How the step grows: a line for each of these numbers of devices, of the kinds of --for."`
	Batch   int      `placeholder:"N" help:"Size of the batch, over all devices: one that the folder was exported with."`
	JSON    bool     `help:"Print a JSON object a line, one for each target."`
	Verbose bool     `short:"v" help:"Show what the Go program prints."`
	Plugin  string   `placeholder:"PATH" help:"Plugin that compiles, in place of the installed one of the target."`
	Prefix  string   `placeholder:"DIR" help:"Folder that plugins are installed in."`

	Timeout time.Duration `default:"10m" help:"How long one compilation may take."`

	// After the first element, all belong to the program.
	Step []string `arg:"" name:"path" passthrough:"" help:"Folder that was exported, file with a program in StableHLO (.mlir), or folder of a Go program, which is run up to its first training step; behind it the program's own arguments."`
}

func (c planCommand) path() string { return c.Step[0] }

func (c planCommand) args() []string { return c.Step[1:] }

func (c planCommand) misplaced() string {
	own := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[planCommand]()) {
		_, positional := f.Tag.Lookup("arg")
		own["--"+strings.ToLower(f.Name)] = !positional
	}
	var flags []string
	for i, arg := range c.Step {
		if name, _, _ := strings.Cut(arg, "="); i > 0 && own[name] {
			flags = append(flags, name)
		}
	}
	if flags == nil {
		return ""
	}
	return fmt.Sprintf("arguments after %s go to the Go program, including %s: put flags of lazo plan before it", plain(c.path()), plain(strings.Join(flags, ", ")))
}

// Run prints a table per target, or a line per size. An error of a target does not stop the others. A step that does
// not fit is a problem found.
func (c planCommand) Run(s session) error {
	targets, err := c.targets()
	if err != nil {
		return err
	}
	stepFor, done, err := c.step(s)
	if err != nil {
		return err
	}
	defer done()
	var reports []*plan.Report
	failed := false
	for i, t := range targets {
		var r *plan.Report
		step, err := stepFor(t)
		if err == nil {
			r, err = step.For(s.ctx, t, xla.Root(c.Prefix), xla.CompileTimeout(c.Timeout))
		}
		switch {
		case s.ctx.Err() != nil:
			return s.ctx.Err()
		case err != nil:
			failed = true
			fmt.Fprintln(s.stderr, "lazo:", plainLines(oneLine(err).Error()))
			continue
		}
		reports = append(reports, r)
		failed = failed || !r.Fit.Fits
		switch {
		case c.JSON:
			text, err := json.Marshal(r)
			if err != nil {
				return err
			}
			fmt.Fprintf(s.stdout, "%s\n", text)
		case len(c.Devices) == 0:
			if i > 0 {
				fmt.Fprintln(s.stdout)
			}
			if err := r.WriteTable(s.stdout); err != nil {
				return err
			}
		}
	}
	if len(c.Devices) > 0 && !c.JSON {
		if err := plan.WriteGrowth(s.stdout, reports); err != nil {
			return err
		}
	}
	if failed {
		return errProblem
	}
	return nil
}

func (c planCommand) targets() ([]plan.Target, error) {
	var all []plan.Target
	if len(c.For) == 0 {
		return nil, errors.New("--for names no machine: expected some, such as --for v5e:4x4,h100:8")
	}
	for _, name := range c.For {
		t, err := plan.ParseTarget(name)
		if err != nil {
			return nil, err
		}
		sized := []plan.Target{t}
		for i, n := range c.Devices {
			of, err := t.Sized(n)
			if err != nil {
				return nil, err
			}
			sized = append(sized[:i], of)
		}
		for _, t := range sized {
			t.Plugin = c.Plugin
			all = append(all, t)
		}
	}
	if c.Batch < 0 {
		return nil, fmt.Errorf("--batch=%d: expected a number of examples", c.Batch)
	}
	return all, nil
}

// Call done after the last target.
func (c planCommand) step(s session) (of func(plan.Target) (plan.Step, error), done func(), err error) {
	done = func() {}
	same := func(step plan.Step, err error) (func(plan.Target) (plan.Step, error), func(), error) {
		return func(plan.Target) (plan.Step, error) { return step, nil }, done, err
	}
	info, err := os.Stat(c.path())
	if err != nil {
		return nil, done, err
	}
	misplaced := c.misplaced()
	if isPackage(c.path()) {
		if misplaced != "" { // no error: the program may have the flag
			fmt.Fprintln(s.stderr, "lazo: note:", misplaced)
		}
		if c.Batch != 0 {
			return nil, done, errors.New("--batch is only for an exported folder with several batch sizes; for a program, use its own flags")
		}
		p, err := buildProgram(s.ctx, c.path(), c.args(), c.Verbose)
		if err != nil {
			return nil, done, err
		}
		return func(t plan.Target) (plan.Step, error) { return p.step(s, t, c.Prefix, c.Timeout) }, func() { _ = p.close() }, nil
	}
	switch {
	case misplaced != "":
		return nil, done, errors.New(misplaced)
	case len(c.args()) > 0:
		return nil, done, fmt.Errorf("arguments %q: arguments are only for a Go program, and %s is not one", c.args(), c.path())
	case info.IsDir() && !exists(filepath.Join(c.path(), manifest)):
		return nil, done, fmt.Errorf("%s: it has no %s, so it is not an exported folder, and no Go files, so it is not a program", c.path(), manifest)
	case info.IsDir():
		p, err := export.Load(c.path())
		if err != nil {
			return nil, done, err
		}
		return same(plan.StepOf(p, c.Batch))
	case c.Batch != 0:
		return nil, done, errors.New("--batch is only for an exported folder with several batch sizes; a file has one program")
	}
	if filepath.Ext(c.path()) == ".go" {
		return nil, done, fmt.Errorf("%s is a file of Go: expected the folder of the program, %s", c.path(), filepath.Dir(c.path()))
	}
	name, text, err := readProgram(c.path())
	return same(plan.Step{Name: name, Text: text}, err)
}
