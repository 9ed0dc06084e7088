package tables

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lazo-ml/lazo/data"
)

// Example makes a table of one row that the preparation takes, for a server that compiles before the first request.
func (p *Preparation) Example() (*data.Set, error) {
	var fields []data.Field
	if p == nil || len(p.columns) == 0 {
		return nil, fmt.Errorf("tables: preparation: example: %w", errZero)
	}
	known := map[string]bool{}
	for _, c := range p.columns {
		if c.label() {
			continue
		}
		names := c.of().taken()
		var found []data.Field
		for _, text := range append([]string{"", "0", "1"}, knownTexts(c)...) {
			row := make([]data.Field, len(names))
			for i, name := range names {
				row[i] = data.Field{Name: name, Array: alike(text, c.of().Dims)}
			}
			alone := Preparation{columns: []prepared{c}}
			if _, err := alone.fields(data.Batch{Fields: row}, false); err == nil {
				found = row
				break
			}
		}
		if found == nil {
			return nil, fmt.Errorf("tables: preparation: example: column %q takes no value that is known", c.of().title())
		}
		for _, f := range found {
			if !known[f.Name] {
				known[f.Name] = true
				fields = append(fields, f)
			}
		}
	}
	if len(fields) == 0 {
		return nil, errors.New("tables: preparation: example: it has only labels, expected inputs")
	}
	return data.New(fields...)
}

func alike(text string, dims []int) data.Array {
	all := []string{text}
	for _, n := range dims {
		all = slices.Repeat(all, n)
	}
	return data.Array{Flat: all, Dims: append([]int{1}, dims...)}
}

func knownTexts(c prepared) []string {
	switch of := c.(type) {
	case classed:
		return of.classNames()
	case *date:
		return []string{time.Unix(0, 0).UTC().Format(cmp.Or(of.Layout, time.DateOnly))}
	}
	return nil
}
