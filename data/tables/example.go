package tables

import (
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/data"
)

// Example makes a table of one row that the preparation takes, for a server that compiles before the first request.
func (p *Preparation) Example() (*data.Set, error) {
	var fields []data.Field
	if p == nil || len(p.columns) == 0 {
		return nil, fmt.Errorf("tables: preparation: example: %w", errZero)
	}
	for _, c := range p.columns {
		if c.label() {
			continue
		}
		var found *data.Field
		alone := Preparation{columns: []prepared{c}}
		for _, text := range append([]string{"", "0", "1", "2000-01-01"}, c.Classes...) {
			f := data.Named(c.Column, []string{text}, 1)
			if _, err := alone.fields(data.Batch{Fields: []data.Field{f}}, false); err == nil {
				found = &f
				break
			}
		}
		if found == nil {
			return nil, fmt.Errorf("tables: preparation: example: column %q takes no value that is known", c.Column)
		}
		fields = append(fields, *found)
	}
	if len(fields) == 0 {
		return nil, errors.New("tables: preparation: example: it has only labels, expected inputs")
	}
	return data.New(fields...)
}
