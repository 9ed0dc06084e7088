package tables

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/listed"
)

// Table makes a table of texts of rows, maps from column name to value, as from JSON: numbers, texts, bools, or nil if
// missing. Each needs exactly the input columns; columns of labels are left out.
func (p *Preparation) Table(rows ...map[string]any) (*data.Set, error) {
	set, err := p.table(rows)
	if err != nil {
		return nil, fmt.Errorf("tables: preparation: table: %w", err)
	}
	return set, nil
}

func (p *Preparation) table(rows []map[string]any) (*data.Set, error) {
	switch {
	case p == nil || len(p.columns) == 0:
		return nil, errZero
	case len(rows) == 0:
		return nil, errors.New("there are no rows")
	}
	var table []data.Field
	known := map[string]bool{}
	for i := range p.columns {
		known[p.columns[i].Column] = true
	}
	for n, row := range rows {
		for _, name := range slices.Sorted(maps.Keys(row)) {
			if !known[name] {
				return nil, rowError(n, "the preparation has no column %s; there are %s", listed.Quoted(name), listed.Some(slices.Sorted(maps.Keys(known))))
			}
		}
	}
	for i := range p.columns {
		c := &p.columns[i]
		if c.label() {
			continue
		}
		texts := make([]string, len(rows))
		for n, row := range rows {
			value, ok := row[c.Column]
			if !ok {
				return nil, rowError(n, "there is no column %q, fitted as a %s: give nil if the value is missing", c.Column, c.As)
			}
			var err error
			if texts[n], err = textOf(value); err != nil {
				return nil, fmt.Errorf("column %q: %w", c.Column, rowError(n, "%w", err))
			}
		}
		table = append(table, data.Named(c.Column, texts, len(rows)))
	}
	if len(table) == 0 {
		return nil, errors.New("it has only labels, expected inputs")
	}
	return data.New(table...)
}

func textOf(value any) (string, error) {
	if n, ok := value.(json.Number); ok { // 1.0 is the class 1, and a long id has all its digits
		if _, err := n.Int64(); err != nil {
			if v, err := n.Float64(); err == nil {
				value = v
			}
		}
	}
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Invalid:
		return "", nil
	case reflect.String:
		return v.String(), nil
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10), nil
	case reflect.Float32, reflect.Float64:
		return decimal(v.Float(), v.Type().Bits()), nil
	}
	return "", fmt.Errorf("the value is %T, expected a number, a text, a truth value, or nil for a missing one", value)
}

var errZero = errors.New("it is the zero value: make one with tables.Fit, or read it from JSON")

const preparationVersion = 1

type preparationFile struct {
	Version int        `json:"version"`
	Columns []prepared `json:"columns"`
	Missing []string   `json:"missing,omitempty"`
}

func (p *Preparation) MarshalJSON() ([]byte, error) {
	if p == nil || len(p.columns) == 0 {
		return nil, errors.New("tables: preparation: it is the zero value: make one with tables.Fit")
	}
	return json.Marshal(preparationFile{preparationVersion, p.columns, p.missing})
}

// UnmarshalJSON decodes the JSON of this or an earlier version. On an error p is unchanged.
func (p *Preparation) UnmarshalJSON(text []byte) error {
	var version struct{ Version int }
	err := json.Unmarshal(text, &version)
	if err == nil && version.Version != preparationVersion {
		err = fmt.Errorf("version %d, expected %d: another version of lazo wrote it, or another program", version.Version, preparationVersion)
	}
	var file preparationFile
	if err == nil {
		strict := json.NewDecoder(bytes.NewReader(text))
		strict.DisallowUnknownFields()
		err = strict.Decode(&file)
	}
	read := Preparation{file.Columns, file.Missing}
	if err == nil {
		err = read.check()
	}
	if err != nil {
		return fmt.Errorf("tables: preparation: read JSON: %w", err)
	}
	*p = read
	return nil
}
