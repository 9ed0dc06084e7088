package main

import (
	"encoding/json"
	"fmt"

	"github.com/lazo-ml/lazo/flaxlike"
)

// modelCommand looks at saved models and asks them.
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
	_, err = fmt.Fprintln(s.stdout, plainLines(d.String()))
	return err
}
