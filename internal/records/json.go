package records

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// WriteJSON writes rows as an array of flat objects, one per line. NaN and infinities are strings. each calls do with
// each row.
func WriteJSON(w io.Writer, each func(do func(*Row) error) error) error {
	out := bufio.NewWriter(w)
	begin := "[\n"
	var line []byte
	err := each(func(r *Row) error {
		if err := r.Check(); err != nil {
			return err
		}
		line = appendJSON(append(line[:0], begin...), r)
		begin = ",\n"
		_, err := out.Write(line)
		return err
	})
	if err != nil {
		return err
	}
	if begin == "[\n" {
		out.WriteString("[") // Flush returns errors
	}
	out.WriteString("\n]\n")
	return out.Flush()
}

// ReadJSON calls do with each row of WriteJSON's array, or of consecutive objects, up to an error, which has the
// position.
func ReadJSON(r io.Reader, do func(*Row) error) error {
	text, mark, err := skipMark(r)
	if err != nil {
		return err
	}
	d := json.NewDecoder(text)
	d.UseNumber()
	if rows, err := readJSON(d, do); err != nil {
		return fmt.Errorf("row %d, before byte %d: %w", rows+1, mark+d.InputOffset(), err)
	}
	return nil
}

func readJSON(d *json.Decoder, do func(*Row) error) (rows int, err error) {
	token, err := d.Token()
	array := token == json.Delim('[')
	if array {
		token, err = d.Token()
	}
	var row Row
	for ; err == nil && token == json.Delim('{'); token, err = d.Token() {
		if err := readObject(d, &row); err != nil {
			return rows, noEOF(err)
		}
		if err := do(&row); err != nil {
			return rows, err
		}
		rows++
	}
	switch {
	case array && err == nil && token == json.Delim(']'):
		if token, err = d.Token(); err == nil {
			return rows, fmt.Errorf("want nothing after the array, got %v", token)
		}
		array = false
	case err == nil:
		return rows, fmt.Errorf("want an object for a row, got %v", token)
	}
	if err == io.EOF && !array {
		return rows, nil
	}
	return rows, noEOF(err)
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func readObject(d *json.Decoder, r *Row) error {
	r.Reset(Elapsed{Batch: UnknownBatch})
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		column, _ := key.(string)
		value, err := d.Token()
		if err != nil {
			return err
		}
		if seen[column] {
			return fmt.Errorf("%q comes twice", column)
		}
		seen[column] = true
		if err := setJSON(r, column, value); err != nil {
			return fmt.Errorf("%q: %w", column, err)
		}
	}
	if !seen[stepsField] {
		return errors.New("no " + stepsField)
	}
	_, err := d.Token()
	return err
}

func setJSON(r *Row, column string, value json.Token) error {
	switch v := value.(type) {
	case json.Number:
		return r.set(column, v.String())
	case string:
		if fieldOf(column) == nil && v != "NaN" && v != "Infinity" && v != "-Infinity" {
			return fmt.Errorf(`want a number, "NaN", "Infinity" or "-Infinity", got %q`, v)
		}
		return r.set(column, v)
	case nil:
		if column != stepsField {
			return nil // other programs' missing values
		}
	}
	return fmt.Errorf("want a number, got %v", value)
}

func appendJSON(b []byte, r *Row) []byte {
	b = append(b, '{')
	for _, f := range ofFiles {
		if f.Name == epochsField && r.Epochs == 0 {
			continue
		}
		before := len(b)
		b = append(b, `"`+f.Path()+`":`...)
		start := len(b)
		if b = f.append(b, r.Elapsed); len(b) == start {
			b = b[:before]
			continue
		}
		b = append(quoted(b, start), ',')
	}
	for i, column := range r.Columns {
		name, _ := json.Marshal(column) // escapes "<" and so on
		b = append(append(b, name...), ':')
		start := len(b)
		b = append(quoted(appendNumber(b, r.Numbers[i]), start), ',')
	}
	b[len(b)-1] = '}' // instead of the comma
	return b
}

func quoted(b []byte, start int) []byte {
	if json.Valid(b[start:]) {
		return b
	}
	b = append(b, `""`...)
	copy(b[start+1:], b[start:])
	b[start] = '"'
	return b
}
