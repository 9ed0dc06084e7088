package loop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// WriteJSON writes all rows as an array of flat objects, one a line: {"elapsed.steps":1,…,"losses.loss":0.5}. It reads
// all values. Numbers come back to the last bit; NaN and the infinities are the strings "NaN", "Infinity", "-Infinity".
// A [Payload] that is no number is left out. Names must be UTF-8 without control characters; the error wraps [ErrName].
func (h *History) WriteJSON(w io.Writer) error {
	out := bufio.NewWriter(w)
	separator := "[\n"
	var line []byte
	err := h.records(func(r *record) error {
		if err := r.check(); err != nil {
			return err
		}
		line = appendJSON(append(line[:0], separator...), r)
		separator = ",\n"
		_, err := out.Write(line)
		return err
	})
	if err != nil {
		return fmt.Errorf("loop: write history: %w", err)
	}
	if h.Len() == 0 {
		out.WriteString("[") // an error stays with the writer until Flush
	}
	out.WriteString("\n]\n")
	if err := out.Flush(); err != nil {
		return fmt.Errorf("loop: write history: %w", err)
	}
	return nil
}

// ReadJSON adds the rows of an array as [History.WriteJSON] makes it, or of objects one after another as a [JSONL] file has
// them. Steps, samples and time are 0 to 2^62. An error says where; the rows before it have been added, so that a file which
// a crash has cut gives all but its last.
func (h *History) ReadJSON(r io.Reader) error {
	text, mark, err := unmarked(r)
	if err != nil {
		return fmt.Errorf("loop: read history: %w", err)
	}
	d := json.NewDecoder(text)
	d.UseNumber()
	if err := h.readJSON(d); err != nil {
		return fmt.Errorf("loop: read history: row %d, before byte %d: %w", h.Len()+1, mark+d.InputOffset(), err)
	}
	return nil
}

func (h *History) readJSON(d *json.Decoder) error {
	token, err := d.Token()
	array := token == json.Delim('[')
	if array {
		token, err = d.Token()
	}
	var rec record
	for ; err == nil && token == json.Delim('{'); token, err = d.Token() {
		if err := readObject(d, &rec); err != nil {
			return noEOF(err)
		}
		if err := h.take(&rec); err != nil {
			return err
		}
	}
	switch {
	case array && err == nil && token == json.Delim(']'):
		if token, err = d.Token(); err == nil {
			return fmt.Errorf("want nothing behind the array, got %v", token)
		}
		array = false
	case err == nil:
		return fmt.Errorf("want an object for a row, got %v", token)
	}
	if err == io.EOF && !array {
		return nil
	}
	return noEOF(err)
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readObject reads the rest of an object whose brace has been read.
func readObject(d *json.Decoder, r *record) error {
	r.reset(row{batch: unknownBatch})
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

func setJSON(r *record, column string, value json.Token) error {
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
			return nil // as missing: other programs write it so
		}
	}
	return fmt.Errorf("want a number, got %v", value)
}

// appendJSON writes a record as an object.
func appendJSON(b []byte, r *record) []byte {
	b = append(b, '{')
	for _, f := range fields {
		before := len(b)
		b = append(b, `"`+f.path()+`":`...)
		start := len(b)
		if b = f.append(b, r.row); len(b) == start {
			b = b[:before]
			continue
		}
		b = append(quoted(b, start), ',')
	}
	for i, column := range r.columns {
		name, _ := json.Marshal(column) // of a string it never fails; "<" and its like are escaped
		b = append(append(b, name...), ':')
		start := len(b)
		b = append(quoted(appendNumber(b, r.numbers[i]), start), ',')
	}
	b[len(b)-1] = '}' // there is a comma: the steps are always known
	return b
}

// quoted puts what begins at start in quotes if JSON does not take it for a number.
func quoted(b []byte, start int) []byte {
	if json.Valid(b[start:]) {
		return b
	}
	b = append(b, `""`...)
	copy(b[start+1:], b[start:])
	b[start] = '"'
	return b
}

// readJSONLine reads a record from a line of JSON.
func readJSONLine(line []byte, r *record) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	token, err := d.Token()
	if err != nil {
		return noEOF(err)
	}
	if token != json.Delim('{') {
		return fmt.Errorf("want an object, got %v", token)
	}
	if err := readObject(d, r); err != nil {
		return noEOF(err)
	}
	if token, err = d.Token(); err != io.EOF {
		return fmt.Errorf("want nothing behind the object, got %v", token)
	}
	return nil
}
