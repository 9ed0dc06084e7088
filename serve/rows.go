package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/answers"
	"github.com/lazo-ml/lazo/internal/document"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/listed"
)

// tabular is a [Predictor], or its method State() any returns one, that prepares tables.
type tabular interface{ Preparation() *tables.Preparation }

// named is one that knows the class names of its outputs.
type named interface{ OutputClasses() map[string][]string }

func preparationOf(of Predictor) *tables.Preparation {
	if t, ok := abilities.As[tabular](of); ok {
		return t.Preparation()
	}
	return nil
}

// textsOf makes texts of an example's columns, as those of a request are, and leaves others out.
func textsOf(p *tables.Preparation, example data.Batch) (data.Batch, error) {
	if len(example.Fields) == 0 {
		row, err := p.Example()
		if err != nil {
			return example, err
		}
		return data.Batch{Fields: row.Fields(), Size: 1}, nil
	}
	values := map[string]any{}
	inputs, _ := p.Columns()
	for _, f := range example.Fields {
		if slices.Contains(inputs, f.Name) && len(f.Array.Dims) == 1 {
			values[f.Name] = reflect.ValueOf(f.Array.Flat).Index(0).Interface()
		}
	}
	row, err := p.Table(values)
	if err != nil {
		return example, err
	}
	return data.Batch{Fields: row.Fields(), Size: 1}, nil
}

func (h *Handler) rows(c *call) (reply, error) {
	b := c.model.batcher
	if b.prepares == nil {
		return reply{}, failed(http.StatusNotFound, "model %q has no preparation for rows of a table: use %q", c.model.name, "infer")
	}
	fields, err := b.columns(c.body, c.r.Header.Get("Content-Type"))
	var r *request
	if err == nil {
		r, err = b.request(data.Batch{Fields: fields})
	}
	switch {
	case errors.Is(err, errLarge):
		return reply{}, failed(http.StatusRequestEntityTooLarge, "%v", err)
	case err != nil:
		return reply{}, failed(http.StatusBadRequest, "the body: %v", graphs.Inner(err))
	}
	c.told.Rows = r.rows
	outputs, queued, err := b.ask(c.r.Context(), r)
	c.told.Queued = queued
	if err != nil {
		return reply{}, err
	}
	var classes map[string][]string
	if n, ok := abilities.As[named](b.of); ok {
		classes = n.OutputClasses()
	}
	for i, what := range answers.NotFinite(outputs) {
		if what != "" {
			return reply{}, failed(http.StatusInternalServerError, "row %d: %s, which JSON cannot represent", i+1, what)
		}
	}
	columns := answers.Columns(outputs, classes)
	all := make([]map[string]any, r.rows)
	for i := range all {
		all[i] = answers.Object(columns, i)
	}
	return inJSON(all)
}

func (b *Batcher) columns(body, contentType string) ([]data.Field, error) {
	if kind, _, _ := mime.ParseMediaType(contentType); kind != "text/csv" {
		rows, err := b.objects(body)
		if err != nil {
			return nil, err
		}
		table, err := b.prepares.Table(rows...)
		if err != nil {
			return nil, err
		}
		return table.Fields(), nil
	}
	if strings.HasPrefix(body, "\x1f\x8b") { // its contents may be larger than a body
		return nil, errors.New("it is gzip, expected text: name it in Content-Encoding")
	}
	table, err := tables.Read(strings.NewReader(body), tables.Format{Texts: true})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(table.Fields(), func(f data.Field) bool {
		_, ok := b.places[f.Name]
		return !ok // as in a table for Predict; none of the inputs may be missing
	}), nil
}

func (b *Batcher) objects(body string) (rows []map[string]any, err error) {
	d, err := document.New(body)
	if err != nil {
		return nil, err
	}
	inputs, labels := b.prepares.Columns()
	d.MaxMembers = len(inputs) + len(labels) + 1 // one more has a name
	one := func() error {
		if len(rows) == b.set.MaxBatch {
			return fmt.Errorf("%w: expected 1 to %d rows", errLarge, b.set.MaxBatch)
		}
		row := map[string]any{}
		rows = append(rows, row)
		err := d.Object("a row", func(name string) (err error) {
			row[name], err = b.value(d, name)
			return err
		})
		if err != nil && len(row) == d.MaxMembers {
			_, err = b.prepares.Table(rows...) // names a column that it does not take
		}
		return err
	}
	if strings.HasPrefix(strings.TrimLeft(body, " \t\r\n"), "[") {
		err = d.List("it", one)
	} else {
		err = one()
	}
	if err == nil {
		err = d.End()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("unexpected end of the JSON")
	}
	return rows, err
}

// value reads an input's value, which is a list for each axis of windows, and no other.
func (b *Batcher) value(d *document.Document, name string) (any, error) {
	text, _, err := d.Text()
	at, ok := b.places[name]
	if err != nil || !ok {
		return nil, err
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	v, err := nested(decoder, b.inputs[at].Dims)
	if err != nil {
		return nil, fmt.Errorf("the value of %s %w", listed.Quoted(name), err)
	}
	return v, nil
}

// nested keeps at most as many values as dims have.
func nested(d *json.Decoder, dims []int) (any, error) {
	t, err := d.Token()
	_, opens := t.(json.Delim)
	switch {
	case err != nil:
		return nil, err
	case len(dims) == 0 && opens:
		return nil, errors.New("is a list or an object, expected a number, a text, true, false, or null for a missing one")
	case len(dims) == 0:
		return t, nil
	case t != json.Delim('['):
		return nil, fmt.Errorf("is not a list, expected one of %d", dims[0])
	}
	var list []any
	for d.More() {
		if len(list) == dims[0] {
			return nil, fmt.Errorf("has a list of more than %d", dims[0])
		}
		v, err := nested(d, dims[1:])
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err = d.Token()
	return list, err
}
