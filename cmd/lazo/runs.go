package main

import (
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/lazo-ml/lazo/internal/runs"
)

type runsCommand struct {
	Dir    string   `arg:"" help:"Folder with the folders of runs: their checkpoints, JSON lines, CSV tables and TensorBoard files."`
	Sort   string   `placeholder:"COLUMN" help:"Sort by a column; -COLUMN begins with the highest."`
	Filter []string `sep:"none" placeholder:"'COLUMN OP VALUE'" help:"List only runs for which this holds; OP is =, !=, <, <=, >, >= or ~ (contains). Several must all hold."`
	Format string   `enum:"text,csv,html" default:"text" help:"text, csv, or html: a page."`
}

// Validate makes a missing folder wrong usage.
func (c runsCommand) Validate() error {
	info, err := os.Stat(c.Dir)
	switch {
	case os.IsNotExist(err):
		return fmt.Errorf("there is no folder %q", c.Dir)
	case err == nil && !info.IsDir():
		return fmt.Errorf("%q is a file, expected a folder of runs", c.Dir)
	}
	return err
}

func (c runsCommand) Run(s session) error {
	places, files, err := runs.Find(s.ctx, c.Dir)
	if err != nil {
		return err
	}
	if len(places) == 0 {
		return fmt.Errorf("no run in %s: of %d files none is a checkpoint, a line of callbacks.JSONL or CSV, or an event of tensorboard.Write", c.Dir, files)
	}
	all, err := runs.ReadAll(s.ctx, places, slog.New(slog.NewTextHandler(s.stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return err
	}
	var bad error
	for _, r := range all {
		if r.Err != nil {
			bad = errProblem
			fmt.Fprintf(s.stderr, "lazo: run %s: %s\n", plain(r.Name), plain(r.Err.Error()))
		}
	}
	table := tableOf(all)
	for _, text := range c.Filter {
		if err := table.filter(text); err != nil {
			return err
		}
	}
	if c.Sort != "" {
		if err := table.sort(c.Sort); err != nil {
			return err
		}
	}
	write := map[string]func(*runsTable, io.Writer) error{"text": (*runsTable).text, "csv": (*runsTable).csv, "html": (*runsTable).html}[c.Format]
	return errors.Join(write(table, s.stdout), bad)
}

const widest = 32

func (t *runsTable) text(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(cells []string) {
		for i, text := range cells {
			if text = plain(text); utf8.RuneCountInString(text) > widest {
				text = string([]rune(text)[:widest-1]) + "…"
			}
			cells[i] = text
		}
		fmt.Fprintln(table, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	line(slices.Clone(t.Columns))
	for _, row := range t.Rows {
		line(texts(row, func(c runsCell) string { return c.Shown }))
	}
	return table.Flush()
}

func texts(row runsRow, of func(runsCell) string) (cells []string) {
	for _, c := range row {
		cells = append(cells, of(c))
	}
	return cells
}

func (t *runsTable) csv(w io.Writer) error {
	table := csv.NewWriter(w)
	_ = table.Write(t.Columns) // Flush keeps the error
	for _, row := range t.Rows {
		_ = table.Write(texts(row, func(c runsCell) string { return c.Text }))
	}
	table.Flush()
	return table.Error()
}

//go:embed runs.html
var runsPage string

var runsTemplate = template.Must(template.New("runs").Parse(runsPage))

func (t *runsTable) html(w io.Writer) error { return runsTemplate.Execute(w, t) }
