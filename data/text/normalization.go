package text

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Normalization changes texts. It encodes as JSON.
type Normalization struct {
	// Form is the Unicode form: NFC, NFD, NFKC or NFKD; "" for none. It is made before and after the other changes.
	Form string `json:"form,omitempty"`
	// Lower makes lower case, as Python's str.lower.
	Lower bool `json:"lower,omitempty"`
	// StripAccents removes marks from the form NFKD, as scikit-learn's strip_accents="unicode".
	StripAccents bool `json:"strip_accents,omitempty"`
}

// Apply returns an error for another Form and for invalid UTF-8.
func (n Normalization) Apply(text string) (string, error) {
	if err := validUTF8(text); err != nil {
		return "", err
	}
	form, known := map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}[n.Form]
	if !known && n.Form != "" {
		return "", fmt.Errorf("text: normalization: the form is %s, expected NFC, NFD, NFKC, NFKD, or none", quoted(n.Form))
	}
	if known {
		text = form.String(text)
	}
	if n.Lower {
		text = toLower(text)
	}
	if n.StripAccents && !isASCII(text) {
		text = strings.Map(func(r rune) rune {
			if r >= 0x300 && norm.NFD.PropertiesString(string(r)).CCC() != 0 {
				return -1
			}
			return r
		}, norm.NFKD.String(text))
	}
	if known && (n.Lower || n.StripAccents) {
		text = form.String(text)
	}
	return text, nil
}

func validUTF8(text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd") {
			return fmt.Errorf("text: the text is not valid UTF-8 at byte %d", i)
		}
	}
	return nil
}

func toLower(text string) string {
	if strings.ContainsRune(text, 'Σ') {
		all := []rune(text)
		for i, r := range all {
			if r == 'Σ' && endsWord(all, i) {
				all[i] = 'ς'
			}
		}
		text = string(all)
	}
	p := span{s: text}
	_ = lowercase(&p, false)
	return p.s
}

// endsWord is Unicode's condition Final_Sigma.
func endsWord(all []rune, i int) bool {
	t := characters()
	ignorable := func(r rune) bool {
		return t.is(r, ignored) || strings.ContainsRune("'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a", r)
	}
	before, after := i-1, i+1
	for before >= 0 && ignorable(all[before]) {
		before--
	}
	for after < len(all) && ignorable(all[after]) {
		after++
	}
	return before >= 0 && t.is(all[before], cased) && (after == len(all) || !t.is(all[after], cased))
}

var (
	cased   = categorySet("Lt") | upper | lower
	ignored = categorySet("Mn") | categorySet("Me") | categorySet("Cf") | categorySet("Lm") | categorySet("Sk")
	wordly  = letter | number
)

// Words returns the runs of letters, numbers and underscores, as Python's re.findall(r"\w+", text).
func Words(text string) []string {
	t := characters()
	var words []string
	from := -1
	for i, r := range text {
		switch inside := r == '_' || t.is(r, wordly); {
		case inside && from < 0:
			from = i
		case !inside && from >= 0:
			words = append(words, text[from:i])
			from = -1
		}
	}
	if from >= 0 {
		words = append(words, text[from:])
	}
	return words
}
