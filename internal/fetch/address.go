package fetch

import (
	"errors"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Parse parses an address. Its error omits the address, which may contain a password; net/url's quotes it.
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

// Redact returns an address for messages, without user name, password, query and fragment: each may be a token.
func Redact(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" {
		return "a malformed address"
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment = nil, "", false, ""
	return cut(u.String())
}

func bare(err error) error {
	if where, ok := errors.AsType[*url.Error](err); ok {
		return where.Err
	}
	return err
}

const longest = 500

// Short shortens an error's text from a server or a file and removes control characters. It wraps err.
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
