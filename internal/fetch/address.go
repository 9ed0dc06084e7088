package fetch

import (
	"errors"
	"net/url"

	"github.com/lazo-ml/lazo/internal/listed"
)

// Parse parses an address. net/url's error quotes the address, which may contain a password; this one omits it.
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
	return listed.Cut(u.String())
}

func bare(err error) error {
	if where, ok := errors.AsType[*url.Error](err); ok {
		return where.Err
	}
	return err
}
