package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
)

type ckptCommand struct {
	Ls     ckptLs     `cmd:"" help:"List the checkpoints of a folder."`
	Show   ckptShow   `cmd:"" help:"Print what is in a checkpoint: tensors, metrics, sections."`
	Verify ckptVerify `cmd:"" help:"Read checkpoints whole and check all checksums."`
	Diff   ckptDiff   `cmd:"" help:"Compare the tensors of two checkpoints."`
	Prune  ckptPrune  `cmd:"" help:"Remove checkpoints but those that the flags keep."`
	Export ckptExport `cmd:"" help:"Write a checkpoint's tensors into a file of safetensors."`
	Import ckptImport `cmd:"" help:"Make a checkpoint of a file of safetensors, or of GoMLX's."`
}

type folderArg struct {
	Dir string `arg:"" help:"Folder of checkpoints."`
}

func (f folderArg) Validate() error { return needFolder(f.Dir) }

func (f folderArg) read(s session) (*checkpoint.Folder, error) {
	log := slog.New(slog.NewTextHandler(s.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return checkpoint.Open(f.Dir, checkpoint.Options{ReadOnly: true, Log: log})
}

func (f folderArg) load(s session, step int64, newest bool) (c *checkpoint.Checkpoint, err error) {
	folder, err := f.read(s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	if newest {
		return folder.Newest(s.ctx)
	}
	return folder.Load(s.ctx, checkpoint.Step(step))
}

type stepArg struct {
	Step int64 `default:"-1" help:"Step of the checkpoint; the newest if it is not given."`
}

type ckptLs struct{ folderArg }

func (c ckptLs) Run(s session) (err error) {
	f, err := c.read(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	list, err := f.List(s.ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "step\tsaved\tbytes\tmetrics")
	bad := false
	for _, i := range list {
		if i.Err != nil {
			bad = true
			fmt.Fprintf(table, "%d\t%s\n", i.Step, plain(i.Err.Error()))
			continue
		}
		fmt.Fprintf(table, "%d\t%s\t%d\t%s\n", i.Step, i.Time.Format(time.RFC3339), i.Bytes, metricsText(i.Metrics))
	}
	if err := table.Flush(); err != nil || !bad {
		return err
	}
	return errProblem
}

func metricsText(metrics map[string]float64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		parts = append(parts, fmt.Sprintf("%s=%g", word(name), metrics[name]))
	}
	return strings.Join(parts, " ")
}

type ckptShow struct {
	folderArg
	stepArg
}

func (c ckptShow) Run(s session) error {
	at, err := c.load(s, c.Step, c.Step < 0)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.stdout, "step %d, saved %s, %d bytes\n", at.Step, at.Time.Format(time.RFC3339), at.Bytes)
	if len(at.Metrics) > 0 {
		fmt.Fprintln(s.stdout, "metrics:", metricsText(at.Metrics))
	}
	table := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	slices.SortFunc(at.Tensors, func(a, b checkpoint.Tensor) int { return strings.Compare(a.Name, b.Name) })
	for _, t := range at.Tensors {
		fmt.Fprintf(table, "%q\t%v%v\t%d bytes\n", t.Name, t.DType, t.Dims, len(t.Data))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, name := range at.Sections() {
		var value any
		if err := at.Section(name, &value); err != nil {
			return err
		}
		text := fmt.Sprint(value)
		if len(text) > 200 {
			text = text[:200] + "…"
		}
		fmt.Fprintf(s.stdout, "section %q: %q\n", name, text)
	}
	return nil
}

type ckptVerify struct {
	folderArg
	Steps []int64 `arg:"" optional:"" help:"Steps to verify; all if none is given."`
}

func (c ckptVerify) Run(s session) (err error) {
	f, err := c.read(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if len(c.Steps) == 0 {
		list, err := f.List(s.ctx)
		if err != nil {
			return err
		}
		for _, i := range list {
			c.Steps = append(c.Steps, int64(i.Step))
		}
	}
	if len(c.Steps) == 0 {
		return fmt.Errorf("%s: %w", c.Dir, checkpoint.ErrNone)
	}
	bad := false
	for _, step := range c.Steps {
		if err := f.Verify(s.ctx, checkpoint.Step(step)); err != nil {
			bad = true
			fmt.Fprintf(s.stdout, "%d: %s\n", step, plain(err.Error()))
			continue
		}
		fmt.Fprintf(s.stdout, "%d: ok\n", step)
	}
	if bad {
		return errProblem
	}
	return nil
}

type ckptPrune struct {
	folderArg
	Last    int      `placeholder:"N" help:"Keep the N newest."`
	Every   int64    `placeholder:"STEPS" help:"Keep the first of each stretch of so many steps."`
	Lowest  []string `placeholder:"METRIC" help:"Keep the one with the lowest value of the metric."`
	Highest []string `placeholder:"METRIC" help:"Keep the one with the highest value of the metric."`
}

func (c ckptPrune) Run(s session) (err error) {
	var keep []checkpoint.Retention
	if c.Last > 0 || c.Every > 0 {
		keep = append(keep, checkpoint.Retention{Last: c.Last, EverySteps: checkpoint.Step(c.Every)})
	}
	for _, m := range c.Lowest {
		keep = append(keep, checkpoint.Retention{Best: 1, Metric: m, Mode: loop.Lowest})
	}
	for _, m := range c.Highest {
		keep = append(keep, checkpoint.Retention{Best: 1, Metric: m, Mode: loop.Highest})
	}
	if len(keep) == 0 || c.Last < 0 || c.Every < 0 {
		return errors.New("set which checkpoints to keep: --last, --every, --lowest or --highest, with positive numbers")
	}
	f, err := checkpoint.Open(c.Dir, checkpoint.Options{Keep: keep})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Prune(s.ctx); err != nil {
		return err
	}
	return ckptLs{c.folderArg}.Run(s)
}
