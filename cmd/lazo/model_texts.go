package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/pretrained"
)

func (c modelPredict) texts(s session) error {
	if len(c.Missing) > 0 {
		return errors.New("--missing is for a saved model with a preparation, and this is a model of texts")
	}
	o, err := openPretrained(s.ctx, c.Path, c.adapterFlag)
	if err != nil {
		return err
	}
	if err := o.needs(classifierHead); err != nil {
		return err
	}
	loss := flaxlike.WithLoss("sparse_categorical_crossentropy")
	switch kind := o.is.Problem; {
	case kind == "multi_label_classification":
		loss = flaxlike.WithLoss("binary_crossentropy")
	case kind == "regression" || len(o.is.Labels) == 1: // a score, without classes
		loss = flaxlike.WithLoss("mse")
	case kind != "" && kind != "single_label_classification":
		return fmt.Errorf("%s: problem_type in config.json is %q, expected single_label_classification, multi_label_classification or regression", c.Path, kind)
	}
	options := []flaxlike.Option{loss}
	if len(o.is.Labels) > 1 && o.is.Problem != "regression" {
		options = append(options, flaxlike.WithClasses(o.is.Labels))
	}
	if _, err := o.Tokenizer(); err != nil {
		return err
	}
	inputs, lines, err := readTexts(c.File, s.stdin)
	if err != nil {
		return fmt.Errorf("%s: %w", source(c.File), err)
	}
	o.exact()
	rows, err := o.answers(s.ctx, o.with(o.Classifier(0)), inputs, c.Most, options...)
	if err != nil {
		return fmt.Errorf("%s: %w", source(c.File), err)
	}
	if c.Output == "json" || c.Output == "auto" && lines {
		return writeLines(s.stdout, rows)
	}
	return writeCSV(s.stdout, rows)
}

type modelEmbed struct {
	Path string `arg:"" help:"Folder of the Hugging Face hub with an encoder, as of sentence-transformers."`
	File string `arg:"" help:"Texts: a file of lines; a CSV file with a column text; lines of JSON (.json, .jsonl) with a field text; - for stdin, lines of text or, if the first begins with {, of JSON."`
	Most int    `help:"Cut texts after so many tokens. Default: longer texts than the model takes are an error."`
	adapterFlag
}

func (c modelEmbed) Run(s session) error {
	o, err := openPretrained(s.ctx, c.Path, c.adapterFlag)
	if err != nil {
		return err
	}
	if err := o.embeds(); err != nil {
		return err
	}
	if _, err := o.Tokenizer(); err != nil {
		return err
	}
	inputs, _, err := readTexts(c.File, s.stdin)
	if err != nil {
		return fmt.Errorf("%s: %w", source(c.File), err)
	}
	o.exact()
	rows, err := o.answers(s.ctx, o.with(o.Embedder()), inputs, c.Most)
	if err != nil {
		return fmt.Errorf("%s: %w", source(c.File), err)
	}
	e := json.NewEncoder(s.stdout)
	for _, r := range rows {
		if err := e.Encode(r.columns[0].JSON(r.row)); err != nil {
			return err
		}
	}
	return nil
}

func (o opened) answers(ctx context.Context, network *pretrained.Network, inputs []text.Input, most int, options ...flaxlike.Option) (rows []answered, err error) {
	if most < 0 {
		return nil, fmt.Errorf("--most is %d, expected 1 or more", most)
	}
	for i := range inputs {
		inputs[i].Most = most
	}
	set, err := o.Set(inputs)
	if err != nil {
		return nil, err
	}
	if most == 0 {
		if err := o.fit(set); err != nil {
			return nil, err
		}
	}
	m, err := flaxlike.New(ctx, network, options...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	p, err := pretrained.Predict(ctx, m, set)
	if err != nil {
		return nil, err
	}
	return answersOf(p)
}

func (o opened) fit(set *data.Set) error {
	mask, err := set.Field("attention_mask")
	if err != nil {
		return err
	}
	tokenizer, err := o.Tokenizer()
	if err != nil {
		return err
	}
	most := cmp.Or(o.is.Sizes["max_seq_length"], tokenizer.MaxLength())
	places := mask.Dims[1]
	for i := range mask.Dims[0] {
		n := 0
		for _, there := range mask.Flat.([]bool)[i*places:][:places] {
			if there {
				n++
			}
		}
		if most > 0 && n > most {
			return fmt.Errorf("text %d has %d tokens, expected at most %d, as the model's files say: give --most %d to cut longer texts", i+1, n, most, most)
		}
	}
	return nil
}

// lines: the rows are lines of JSON.
func readTexts(path string, stdin io.Reader) (all []text.Input, lines bool, err error) {
	if filepath.Ext(path) == ".csv" {
		all, err = textsOfCSV(path)
		return all, false, err
	}
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, false, err
		}
		defer file.Close()
		stdin = file
	}
	from := bufio.NewReader(stdin)
	first, _ := from.Peek(1)
	if lines = slices.Contains(jsonSuffixes, filepath.Ext(path)) || path == "-" && string(first) == "{"; lines {
		err = eachRow(from, func(line []byte) error {
			row := map[string]string{}
			if err := json.Unmarshal(line, &row); err != nil {
				return inJSON(err, `an object of texts, as {"text": "…"}, and maybe with "pair"`)
			}
			in, pair := text.Input{Text: row["text"]}, row["pair"]
			if pair != "" { // else a text alone, as in transformers
				in.Pair = &pair
			}
			_, there := row["text"]
			fields := slices.Sorted(maps.Keys(row))
			delete(row, "text")
			if delete(row, "pair"); !there || len(row) > 0 {
				return fmt.Errorf(`it has the fields %q, expected "text", and maybe "pair"`, fields)
			}
			all = append(all, in)
			return nil
		})
		return all, true, err
	}
	for {
		line, err := from.ReadString('\n')
		if line != "" {
			all = append(all, text.Input{Text: string(bytes.TrimRight([]byte(line), "\r\n"))})
		}
		switch {
		case errors.Is(err, io.EOF) && len(all) == 0:
			return nil, false, errors.New("there are no texts")
		case errors.Is(err, io.EOF):
			return all, false, nil
		case err != nil:
			return nil, false, err
		}
	}
}

func textsOfCSV(path string) (all []text.Input, err error) {
	set, err := tables.Open(path, tables.Format{Texts: true})
	if err != nil {
		return nil, err
	}
	columns := map[string][]string{}
	for _, f := range set.Fields() {
		columns[f.Name], _ = f.Array.Flat.([]string)
	}
	if columns["text"] == nil {
		return nil, fmt.Errorf("it has the columns %q, expected text, and maybe pair", slices.Sorted(maps.Keys(columns)))
	}
	for i, t := range columns["text"] {
		in := text.Input{Text: t}
		if pairs := columns["pair"]; pairs != nil && pairs[i] != "" { // else a text alone, as in transformers
			in.Pair = &pairs[i]
		}
		all = append(all, in)
	}
	return all, nil
}
