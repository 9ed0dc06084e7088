// Package document reads the JSON of requests strictly, and in bounded memory.
package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lazo-ml/lazo/internal/listed"
)

const (
	longList   = 64 // bytes; a shorter list is not worth cutting
	deepList   = 32
	maxMembers = 64
)

// Document refuses a repeated name, invalid UTF-8 and text after the value. encoding/json does not see the long lists
// of numbers (docs/decisions/0017).
type Document struct {
	*json.Decoder
	MaxMembers int
	lists      []piece
}

type piece struct {
	at   int64
	text string
}

func New(text string) (*Document, error) {
	rest, lists := cut(text)
	if !utf8.ValidString(rest) {
		return nil, errors.New("it is not UTF-8")
	}
	return &Document{json.NewDecoder(strings.NewReader(rest)), maxMembers, lists}, nil
}

// Long lists of numbers, or of true and false, become []: the rest is JSON exactly if the text is.
func cut(text string) (rest string, lists []piece) {
	var b strings.Builder
	from := 0
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case '"':
			for at++; at < len(text) && text[at] != '"'; at++ {
				if text[at] == '\\' {
					at++
				}
			}
		case '[':
			n, ok := numbers(text[at:])
			if ok && n >= longList {
				b.WriteString(text[from:at])
				lists = append(lists, piece{int64(b.Len()), text[at : at+n]})
				b.WriteString("[]")
				from = at + n
			}
			at += n - 1 // also after a failure, so that no byte is tried twice
		}
	}
	if from == 0 {
		return text, nil
	}
	b.WriteString(text[from:])
	return b.String(), lists
}

// n is the length of the JSON list, flat or nested, of numbers, true and false at the beginning of text, or where it is
// none.
func numbers(text string) (n int, ok bool) {
	depth, value, end := 0, true, false // what may come: a value, a list's end
	for n < len(text) {
		switch c := text[n]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			n++
		case c == '[' && value && depth < deepList:
			depth++
			n++
			end = true
		case c == ']' && end:
			depth--
			n++
			if depth == 0 {
				return n, true
			}
			value = false
		case c == ',' && !value:
			n++
			value, end = true, false
		default:
			size := scalar(text[n:])
			if size == 0 || !value || depth == 0 {
				return n, false
			}
			n += size
			value, end = false, true
		}
	}
	return n, false
}

func scalar(text string) (n int) {
	for _, word := range []string{"true", "false"} {
		if strings.HasPrefix(text, word) {
			return len(word)
		}
	}
	digits := func() bool {
		from := n
		for n < len(text) && text[n] >= '0' && text[n] <= '9' {
			n++
		}
		return n > from
	}
	if text[0] == '-' {
		n++
	}
	if n < len(text) && text[n] == '0' {
		n++
	} else if !digits() {
		return 0
	}
	if n < len(text) && text[n] == '.' {
		if n++; !digits() {
			return 0
		}
	}
	if n < len(text) && (text[n] == 'e' || text[n] == 'E') {
		if n++; n < len(text) && (text[n] == '+' || text[n] == '-') {
			n++
		}
		if !digits() {
			return 0
		}
	}
	return n
}

// textsAlone reports whether a JSON value is a flat list of texts.
func textsAlone(text string) bool {
	if text[0] != '[' || !strings.Contains(text, `"`) {
		return false
	}
	for at := 1; at < len(text)-1; at++ {
		switch text[at] {
		case ' ', '\t', '\n', '\r', ',':
		case '"':
			for at++; text[at] != '"'; at++ {
				if text[at] == '\\' {
					at++
				}
			}
		default:
			return false
		}
	}
	return true
}

func (d *Document) End() error {
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is text after the JSON object")
	}
	return nil
}

// Object reads an object. It calls member, which reads the value, with each name.
func (d *Document) Object(what string, member func(name string) error) error {
	if err := d.open('{', what, "an object"); err != nil {
		return err
	}
	var seen []string
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string) // the decoder refuses others
		switch {
		case slices.Contains(seen, name):
			return fmt.Errorf("%s has %s twice", what, listed.Quoted(name))
		case len(seen) == d.MaxMembers:
			return fmt.Errorf("%s has more than %d members", what, d.MaxMembers)
		}
		seen = append(seen, name)
		if err := member(name); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

func (d *Document) List(what string, element func() error) error {
	if err := d.open('[', what, "a list"); err != nil {
		return err
	}
	if d.cut(d.InputOffset() - 1) {
		return fmt.Errorf("%s is a list of numbers, expected one of objects", what)
	}
	for d.More() {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

func (d *Document) open(bracket json.Delim, what, expected string) error {
	t, err := d.Token()
	if err == nil && t != bracket {
		err = fmt.Errorf("%s is %s, expected %s", what, kindOf(t), expected)
	}
	return err
}

func kindOf(t json.Token) string {
	switch t.(type) {
	case json.Delim:
		if t == json.Delim('{') {
			return "an object"
		}
		return "a list"
	case string:
		return "a string"
	case bool:
		return "true or false"
	case nil:
		return "null"
	}
	return "a number"
}

// Text reads the next value and returns its JSON, and whether it is a long list of numbers.
func (d *Document) Text() (text string, list bool, err error) {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return "", false, err
	}
	if d.cut(d.InputOffset() - int64(len(raw))) {
		return d.lists[0].text, true, nil
	}
	return string(raw), false, nil
}

// The list is the first of lists then.
func (d *Document) cut(at int64) bool {
	for len(d.lists) > 0 && d.lists[0].at < at {
		d.lists = d.lists[1:]
	}
	return len(d.lists) > 0 && d.lists[0].at == at
}

// Elements reads a list of numbers, of true and false, or a flat one of texts.
func (d *Document) Elements(what string) (string, error) {
	text, list, err := d.Text()
	if err != nil || list {
		return text, err
	}
	if textsAlone(text) {
		return text, nil
	}
	if n, ok := numbers(text); !ok || n != len(text) {
		return "", fmt.Errorf("%s is %s, expected a list of numbers, or of true and false", what, listed.Quoted(text))
	}
	return text, nil
}

func Read[T string | int | float64 | bool](d *Document, what, expected string) (v T, err error) {
	text, _, err := d.Text()
	if err != nil {
		return v, err
	}
	if text == "null" || json.Unmarshal([]byte(text), &v) != nil {
		return v, fmt.Errorf("%s is %s, expected %s", what, listed.Quoted(text), expected)
	}
	return v, nil
}
