package pretrained

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lazo-ml/lazo/data/text"
)

type decoding struct {
	of     *text.Tokenizer
	stops  []string
	ids    []int32 // the last ones that made text, and later ones
	before int     // number of those that made text
	known  string  // the text of these
	held   string  // may begin one of stops
}

// newDecoding needs the prompt, without which a first space would be missing.
func newDecoding(of *text.Tokenizer, stops []string, prompt []int32) (*decoding, error) {
	known, err := of.DecodeOrdinary(prompt)
	return &decoding{of: of, stops: stops, ids: prompt[:len(prompt):len(prompt)], before: len(prompt), known: known}, err
}

// add returns the text that is certain after a token, and whether one of stops has come. A token that ends a text has
// none.
func (d *decoding) add(id int32, end string) (certain string, stopped bool, err error) {
	if end != endStop {
		d.ids = append(d.ids, id)
	}
	whole, err := d.of.DecodeOrdinary(d.ids)
	if err != nil || end == "" && unfinished(whole) {
		return "", false, err
	}
	fresh, ok := strings.CutPrefix(whole, d.known)
	if !ok { // a prompt that ends within a character
		fresh, ok = strings.CutPrefix(whole, strings.TrimRight(d.known, "\ufffd"))
	}
	if !ok {
		return "", false, errors.New("the tokenizer's decoder changes the text of earlier tokens: generate without a Tokenizer, and decode the whole")
	}
	if fresh != "" {
		d.ids = d.ids[d.before:]
		d.before = len(d.ids)
		if d.known, err = d.of.DecodeOrdinary(d.ids); err != nil {
			return "", false, err
		}
	}
	d.held += lossy(fresh)
	first := -1
	for _, s := range d.stops {
		if at := strings.Index(d.held, s); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	if first >= 0 {
		return d.held[:first], true, nil
	}
	n := 0
	if end == "" {
		n = d.begun()
	}
	certain, d.held = d.held[:len(d.held)-n], d.held[len(d.held)-n:]
	return certain, false, nil
}

// begun returns the length of the longest end of the held text that begins one of stops.
func (d *decoding) begun() (longest int) {
	for _, s := range d.stops {
		for n := min(len(s)-1, len(d.held)); n > longest; n-- {
			if strings.HasSuffix(d.held, s[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// unfinished reports whether a text ends within a character, also as a byte decoder writes that.
func unfinished(s string) bool {
	for i := max(0, len(s)-utf8.UTFMax+1); i < len(s); i++ {
		if utf8.RuneStart(s[i]) && !utf8.FullRuneInString(s[i:]) {
			return true
		}
	}
	return strings.HasSuffix(s, "\ufffd")
}

// lossy replaces non-UTF-8 bytes as Python: together if they begin a character.
func lossy(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var out strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			for n < len(s) && !utf8.FullRuneInString(s[:n+1]) {
				n++
			}
		}
		out.WriteRune(r)
		s = s[n:]
	}
	return out.String()
}

func checkStops(stops []string, of *text.Tokenizer) error {
	for i, s := range stops {
		if s == "" || !utf8.ValidString(s) {
			return fmt.Errorf("StopTexts[%d] is %q, expected a text in UTF-8", i, s)
		}
	}
	if len(stops) > 0 && of == nil {
		return errors.New("StopTexts without a Tokenizer, which makes text of tokens")
	}
	return nil
}
