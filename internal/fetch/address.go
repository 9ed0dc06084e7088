package fetch

import (
	"errors"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Parse reads an address. Its error says nothing of what the address is, since there may be a password in it: net/url's
// own quotes it.
func Parse(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errMalformed
	case u.Scheme != "https" || u.Host == "":
		return nil, ErrInsecure
	}
	return u, nil
}

var errMalformed = errors.New("a malformed address, expected https://HOST/PATH (in a user's name or password, / @ : # and % are written %2F %40 %3A %23 and %25)")

// redact is an address without what may be secret in it: password, query, fragment.
func redact(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" {
		return "a malformed address"
	}
	u.RawQuery, u.Fragment = "", ""
	return cut(u.Redacted())
}

// bare takes off the layer of an error that repeats the address with its secrets.
func bare(err error) error {
	if where, ok := errors.AsType[*url.Error](err); ok {
		return where.Err
	}
	return err
}

// longest is how long a text in an error is that a server, or a file of others, had a hand in.
const longest = 500

// Short is err with a text that fits on a screen, and that no terminal takes orders from. It is for errors with words
// of a server's or a file's in them; what they wrap stays as it is.
func Short(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if short := cut(text); short != text {
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

func cut(text string) string {
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
