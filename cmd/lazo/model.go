package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
)

type modelCommand struct {
	Show    modelShow    `cmd:"" help:"Print what a saved model is: its network, what it takes, and its card."`
	Predict modelPredict `cmd:"" help:"Print what a saved model says of the rows of a file."`
}

type modelShow struct {
	Path string `arg:"" help:"File that Model.Save wrote."`
	JSON bool   `help:"As JSON."`
}

func (c modelShow) Run(s session) error {
	d, err := flaxlike.Describe(c.Path)
	if err != nil {
		return err
	}
	if c.JSON {
		e := json.NewEncoder(s.stdout)
		e.SetIndent("", "  ")
		return e.Encode(d)
	}
	_, err = fmt.Fprintln(s.stdout, plainLines(withColumns(d)))
	return err
}

func withColumns(d flaxlike.Description) string {
	p := new(tables.Preparation)
	if d.Preparation == nil || json.Unmarshal(d.Preparation, p) != nil { // another program's
		return d.String()
	}
	const title = "preparation"
	var lines []string
	for line := range strings.SplitSeq(d.String(), "\n") {
		lines = append(lines, line)
		if value, ours := strings.CutPrefix(line, title+" "); ours {
			inputs, _ := p.Columns()
			indent := strings.Repeat(" ", len(line)-len(strings.TrimLeft(value, " ")))
			lines = append(lines, indent+"predict needs the columns "+strings.Join(inputs, ", "))
		}
	}
	return strings.Join(lines, "\n")
}
