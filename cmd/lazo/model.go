package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/pretrained"
)

type modelCommand struct {
	Show     modelShow     `cmd:"" help:"Print what a saved model is: its network, what it takes, and its card; or what a folder of the Hugging Face hub has."`
	Predict  modelPredict  `cmd:"" help:"Print what a saved model says of the rows of a file, or a classifier of the hub of texts."`
	Download modelDownload `cmd:"" help:"Download a model of the Hugging Face hub, and print its folder."`
	Convert  modelConvert  `cmd:"" help:"Write a model of the hub in another dtype, or as a file .gguf."`
	Embed    modelEmbed    `cmd:"" help:"Print vectors of texts as lines of JSON."`
	Generate modelGenerate `cmd:"" help:"Continue a text by a language model."`
	Chat     modelChat     `cmd:"" help:"Talk with a language model: each line of stdin is a turn."`
}

type modelShow struct {
	Path string `arg:"" help:"File that Model.Save wrote; or a folder of the Hugging Face hub, or a file .gguf."`
	JSON bool   `help:"As JSON."`
}

func (c modelShow) Run(s session) error {
	if err := needModel(c.Path); err != nil {
		return err
	}
	if info, err := os.Stat(c.Path); err == nil && info.IsDir() || isPretrained(c.Path) {
		return c.pretrained(s)
	}
	d, err := flaxlike.Describe(c.Path)
	if err != nil {
		return err
	}
	return c.print(s, d, d.String())
}

func (c modelShow) pretrained(s session) error {
	with, err := adapterOf(c.Path)
	if err != nil {
		return err
	}
	if with != nil && !isPretrained(c.Path) {
		return c.print(s, with, with.String())
	}
	if with == nil {
		o, err := openPretrained(s.ctx, c.Path, adapterFlag{})
		if err != nil {
			return err
		}
		return c.print(s, o.is, o.is.String())
	}
	base, err := pretrained.Open(s.ctx, c.Path)
	if err != nil {
		return err
	}
	is := base.Describe()
	return c.print(s, struct {
		pretrained.Description
		Adapter *adapter `json:"adapter"`
	}{is, with}, is.String()+"\n"+with.String())
}

func (c modelShow) print(s session, described any, text string) error {
	if c.JSON {
		e := json.NewEncoder(s.stdout)
		e.SetIndent("", "  ")
		return e.Encode(described)
	}
	_, err := fmt.Fprintln(s.stdout, plainLines(text))
	return err
}
