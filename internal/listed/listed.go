// Package listed writes names in messages, and finds duplicates in them.
package listed

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quoted quotes a text of others, like a name from a file: at most 100 bytes, without terminal controls.
func Quoted(text string) string {
	const most = 100
	if len(text) <= most {
		return strconv.Quote(text)
	}
	end := most
	for !utf8.RuneStart(text[end]) && end > most-utf8.UTFMax {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes)", strconv.Quote(text[:end]), len(text))
}

// Some returns the first ten names and the number of the others.
func Some(names []string) string {
	const most = 10
	quoted, more := make([]string, min(len(names), most)), ""
	for i := range quoted {
		quoted[i] = Quoted(names[i])
	}
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
	}
	return fmt.Sprintf("[%s]%s", strings.Join(quoted, " "), more)
}

// Joined returns names with commas between, or [Some] if they are long.
func Joined(names []string) string {
	if text := strings.Join(names, ", "); len(text) <= 2000 {
		return text
	}
	return Some(names)
}

const longest = 500

// Short wraps err and shortens its text of others, as from a server or a file, without control characters.
func Short(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if short := Cut(text); short != text {
		return &cutError{short, err}
	}
	return err
}

type cutError struct {
	text string
	err  error
}

func (e *cutError) Error() string { return e.text }
func (e *cutError) Unwrap() error { return e.err }

func Cut(text string) string {
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + " …"
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// Distinct returns an error unless the names of n fields differ. of is for messages: "of 3", "of the batch".
func Distinct(n int, of string, name func(i int) string) error {
	for i := range n {
		for j := range i {
			if name(i) == name(j) {
				return fmt.Errorf("fields %d and %d %s have the same name %q: give each its own name (data.Named)", j+1, i+1, of, name(i))
			}
		}
	}
	return nil
}
