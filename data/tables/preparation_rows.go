package tables

import (
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

// Table makes a table of texts of rows, maps from column name to value, as from JSON: numbers, texts, bools, or nil
// if missing, and lists of them for windows. Each needs exactly the input columns.
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
	known := map[string]bool{}
	for _, c := range p.columns {
		for _, name := range c.of().taken() {
			known[name] = true
		}
	}
	for n, row := range rows {
		for _, name := range slices.Sorted(maps.Keys(row)) {
			if !known[name] {
				return nil, rowError(n, "the preparation has no column %s; there are %s", listed.Quoted(name), listed.Some(slices.Sorted(maps.Keys(known))))
			}
		}
	}
	var table []data.Field
	for _, c := range p.columns {
		for _, name := range c.of().taken() {
			if c.label() || !known[name] {
				continue
			}
			known[name] = false // several rules may take it
			field, err := p.columnOfRows(rows, name, c)
			if err != nil {
				return nil, err
			}
			table = append(table, field)
		}
	}
	if len(table) == 0 {
		return nil, errors.New("it has only labels, expected inputs")
	}
	return data.New(table...)
}

func (p *Preparation) columnOfRows(rows []map[string]any, name string, c prepared) (data.Field, error) {
	of, text := c.of(), textOf
	if k, ok := c.(*category); ok && !k.shares() {
		text = func(value any) (string, error) {
			text, err := textOf(value)
			if _, is := value.(string); err == nil {
				text = k.sameValue(text, is)
			}
			return text, err
		}
	}
	if slices.ContainsFunc(p.columns, func(c prepared) bool { return slices.Contains(c.of().Texts, name) }) {
		text = func(value any) (string, error) {
			text, err := textOf(value)
			if _, is := value.(string); !is && err == nil && text != "" {
				return "", fmt.Errorf("the value %v is %s, and the column was fitted as texts, of which 17 and 17.0 are two: give the text that the table has", value, kindOf(value))
			}
			return text, err
		}
	}
	texts := make([]string, 0, len(rows))
	for n, row := range rows {
		value, ok := row[name]
		if !ok {
			return data.Field{}, rowError(n, "there is no column %q, fitted as a %s: give nil (null in JSON) if the value is missing", name, of.As)
		}
		var err error
		if texts, err = appendTexts(texts, value, of.Dims, text); err != nil {
			return data.Field{}, fmt.Errorf("column %q: %w", name, rowError(n, "%w", err))
		}
	}
	return data.Named(name, texts, append([]int{len(rows)}, of.Dims...)...), nil
}

func appendTexts(texts []string, value any, dims []int, textOf func(any) (string, error)) ([]string, error) {
	if len(dims) == 0 {
		text, err := textOf(value)
		return append(texts, text), err
	}
	list := reflect.ValueOf(value)
	if list.Kind() != reflect.Slice {
		return nil, fmt.Errorf("the value is %s, expected a list of %d", kindOf(value), dims[0])
	}
	if list.Len() != dims[0] {
		return nil, fmt.Errorf("the value is a list of %d, expected one of %d", list.Len(), dims[0])
	}
	var err error
	for i := 0; err == nil && i < list.Len(); i++ {
		texts, err = appendTexts(texts, list.Index(i).Interface(), dims[1:], textOf)
	}
	return texts, err
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
	return "", fmt.Errorf("the value is %s, expected a number, a text, a truth value, or nil (null in JSON) for a missing one", kindOf(value))
}

// kindOf has the words of JSON, from which a row may come.
func kindOf(value any) string {
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Invalid:
		return "missing"
	case reflect.Bool:
		return "a truth value"
	case reflect.Slice:
		return "a list"
	case reflect.Map:
		return "an object"
	}
	if _, ok := value.(json.Number); ok || v.CanInt() || v.CanUint() || v.CanFloat() {
		return "a number"
	}
	return fmt.Sprintf("a %T", value)
}

var errZero = errors.New("it is the zero value: make one with tables.Fit, or read it from JSON")

const preparationVersion = 1

type preparationFile struct {
	Version int               `json:"version"`
	Columns []json.RawMessage `json:"columns"`
	Missing []string          `json:"missing,omitempty"`
}

func (p *Preparation) MarshalJSON() ([]byte, error) {
	if p == nil || len(p.columns) == 0 {
		return nil, errors.New("tables: preparation: it is the zero value: make one with tables.Fit")
	}
	file := preparationFile{Version: preparationVersion, Missing: p.missing}
	for _, c := range p.columns {
		text, err := json.Marshal(c)
		if err != nil {
			return nil, fmt.Errorf("tables: preparation: column %q: %w", c.of().title(), err)
		}
		file.Columns = append(file.Columns, text)
	}
	return json.Marshal(file)
}

// UnmarshalJSON decodes the JSON of this or an earlier version. On an error p is unchanged.
func (p *Preparation) UnmarshalJSON(text []byte) error {
	_, err := p.read(text, nil)
	return err
}

func (p *Preparation) read(text []byte, functions Functions) (used map[string]bool, err error) {
	var version struct{ Version int }
	err = json.Unmarshal(text, &version)
	if err == nil && version.Version != preparationVersion {
		err = fmt.Errorf("version %d, expected %d: another version of lazo wrote it, or another program", version.Version, preparationVersion)
	}
	var file preparationFile
	if err == nil {
		err = strictly(text, &file)
	}
	read := Preparation{missing: file.Missing}
	used = map[string]bool{}
	for i := 0; err == nil && i < len(file.Columns); i++ {
		var c prepared
		c, err = readPrepared(file.Columns[i])
		if f, ok := c.(*function); ok {
			f.f, used[f.Name] = functions[f.Name], true
		}
		read.columns = append(read.columns, c)
	}
	if err == nil {
		err = read.check()
	}
	if err != nil {
		return nil, fmt.Errorf("tables: preparation: read JSON: %w", err)
	}
	*p = read
	return used, nil
}
