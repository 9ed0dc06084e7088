// Package fetch downloads files whose SHA-256 is known beforehand.
//
// What arrives is written under a random name, checked against size and digest while it streams, and synced to disk. On
// any error nothing is left behind. The transport is HTTPS only, also after redirects; proxies come from the
// environment in the way net/http reads them.
package fetch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Errors that a caller can act on; each comes wrapped in a message with the file, where it came from, and expected
// against got.
var (
	// ErrDigest: the bytes are not the pinned ones. Never use them; try another source.
	ErrDigest = errors.New("wrong digest")
	// ErrSize: more or fewer bytes than pinned, or more than the limit.
	ErrSize = errors.New("wrong size")
	// ErrStatus: the server answered something else than 200.
	ErrStatus = errors.New("unexpected status")
	// ErrInsecure: an address, or the target of a redirect, is not https.
	ErrInsecure = errors.New("not an https address")
	// ErrRedirects: the server keeps redirecting.
	ErrRedirects = errors.New("too many redirects")
	// ErrTimeout: no byte within the idle timeout, or not finished within the total one. The context's own end is not
	// this error.
	ErrTimeout = errors.New("timed out")
)

const (
	defaultIdleTimeout  = 30 * time.Second
	defaultTotalTimeout = time.Hour
	defaultLimit        = 4 << 30
	maxRedirects        = 10
	tempPattern         = ".fetch-*"
)

// File says what to download and how to recognise it.
type File struct {
	Name   string // for messages; "" takes the last part of URL
	URL    string // https
	Size   int64  // bytes; 0: unknown, then Client.Limit bounds it
	SHA256 string // lower-case hex, required
}

// Client downloads. The zero value is ready to use; it is safe for concurrent use if Progress is.
type Client struct {
	HTTP         *http.Client                   // nil: TLS 1.2 or newer, proxy from the environment
	IdleTimeout  time.Duration                  // longest wait for the next byte, headers included; 0: 30 s
	TotalTimeout time.Duration                  // longest download; 0: 1 h
	Limit        int64                          // most bytes of a file of unknown size; 0: 4 GiB
	Progress     func(done, total int64)        // after each read, in bytes; total 0: unknown
	create       func(string) (*os.File, error) // tests: a disk that is full
}

// Download puts f into a new file with a random name in dir (which must exist), mode 0600, and returns its path. Size
// and digest are verified and the file is synced; the caller renames it to where it belongs. On an error no file is
// left. A process killed in here leaves one: a later Download into dir removes those older than the total timeout.
func (c Client) Download(ctx context.Context, f File, dir string) (_ string, err error) {
	c = c.withDefaults()
	f.Name = cmp.Or(f.Name, path.Base(redact(f.URL)))
	defer func() {
		if err != nil {
			err = fmt.Errorf("fetch: %s from %s: %w", cut(f.Name), redact(f.URL), Short(err))
		}
	}()
	if digest, err := hex.DecodeString(f.SHA256); err != nil || len(digest) != sha256.Size || strings.ToLower(f.SHA256) != f.SHA256 {
		return "", fmt.Errorf("digest %q is not 64 lower-case hex digits: %w", f.SHA256, ErrDigest)
	}
	removeStale(dir, c.TotalTimeout)

	ctx, cancelTotal := context.WithTimeoutCause(ctx, c.TotalTimeout, fmt.Errorf("%w: not finished after %v", ErrTimeout, c.TotalTimeout))
	defer cancelTotal()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(c.IdleTimeout, func() { cancel(fmt.Errorf("%w: no data for %v", ErrTimeout, c.IdleTimeout)) })
	defer idle.Stop()

	body, err := c.open(ctx, f)
	if err != nil {
		return "", because(ctx, err)
	}
	defer body.Close()
	out, err := c.create(dir)
	if err != nil {
		return "", ExplainFullDisk(err, dir)
	}
	defer func() {
		if err != nil {
			out.Close()
			os.Remove(out.Name())
		}
	}()
	if err := c.copy(ctx, out, body, f, func() { idle.Reset(c.IdleTimeout) }); err != nil {
		return "", err
	}
	if err := out.Sync(); err != nil {
		return "", ExplainFullDisk(err, dir)
	}
	if err := out.Close(); err != nil {
		return "", ExplainFullDisk(err, dir)
	}
	return out.Name(), nil
}

func (c Client) withDefaults() Client {
	if c.HTTP == nil {
		c.HTTP = NewHTTPClient()
	}
	if c.IdleTimeout <= 0 {
		c.IdleTimeout = defaultIdleTimeout
	}
	if c.TotalTimeout <= 0 {
		c.TotalTimeout = defaultTotalTimeout
	}
	if c.Limit <= 0 {
		c.Limit = defaultLimit
	}
	if c.Progress == nil {
		c.Progress = func(done, total int64) {}
	}
	if c.create == nil {
		c.create = func(dir string) (*os.File, error) { return os.CreateTemp(dir, tempPattern) }
	}
	return c
}

// NewHTTPClient returns the client that is used where none is given: TLS 1.2 or newer, proxy from the environment.
// Connections are not kept, so nothing runs on after a download.
func NewHTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: defaultIdleTimeout,
		ForceAttemptHTTP2:   true,
		DisableKeepAlives:   true,
	}}
}

// Open starts the download of an https address and returns its body. It is for index pages, which have no digest: bound
// what you read. The errors are those of Download.
func (c Client) Open(ctx context.Context, address string) (io.ReadCloser, error) {
	c = c.withDefaults()
	body, err := c.open(ctx, File{Name: "page", URL: address})
	if err != nil {
		return nil, fmt.Errorf("fetch: %s: %w", redact(address), Short(because(ctx, err)))
	}
	return body, nil
}

func (c Client) open(ctx context.Context, f File) (io.ReadCloser, error) {
	address, err := Parse(f.URL)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, bare(err)
	}
	// The digest is over the file as it lies on the server, so it must not be compressed on the way.
	request.Header.Set("Accept-Encoding", "identity")
	client := *c.HTTP
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if next.URL.Scheme != "https" {
			return fmt.Errorf("redirect to %s: %w", redact(next.URL.String()), ErrInsecure)
		}
		if len(via) >= maxRedirects {
			return fmt.Errorf("%w: %d", ErrRedirects, len(via))
		}
		return nil
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, bare(err)
	}
	switch {
	case response.StatusCode != http.StatusOK:
		err = fmt.Errorf("%w: %s, want 200", ErrStatus, response.Status)
	case f.Size > 0 && response.ContentLength >= 0 && response.ContentLength != f.Size:
		err = fmt.Errorf("%w: the server offers %d bytes, want %d", ErrSize, response.ContentLength, f.Size)
	case f.Size <= 0 && response.ContentLength > c.Limit:
		err = fmt.Errorf("%w: the server offers %d bytes, the limit is %d", ErrSize, response.ContentLength, c.Limit)
	}
	if err != nil {
		response.Body.Close()
		return nil, err
	}
	return response.Body, nil
}

// copy streams body to out and judges it. alive is called at each byte that comes.
func (c Client) copy(ctx context.Context, out *os.File, body io.Reader, f File, alive func()) error {
	most := f.Size
	if most <= 0 {
		most = c.Limit
	}
	var (
		digest hash.Hash = sha256.New()
		buffer           = make([]byte, 256<<10)
		done   int64
	)
	for {
		n, readErr := body.Read(buffer)
		if n > 0 {
			alive()
			done += int64(n)
			if done > most {
				return fmt.Errorf("%w: more than %d bytes", ErrSize, most)
			}
			digest.Write(buffer[:n])
			if _, err := out.Write(buffer[:n]); err != nil {
				return ExplainFullDisk(err, filepath.Dir(out.Name()))
			}
			c.Progress(done, max(f.Size, 0))
		}
		if readErr == io.EOF {
			break
		}
		if readErr != nil && f.Size > 0 && errors.Is(readErr, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%w: the connection ended after %d bytes, want %d: %w", ErrSize, done, f.Size, readErr)
		}
		if readErr != nil {
			return fmt.Errorf("after %d bytes: %w", done, because(ctx, readErr))
		}
	}
	if err := judge(done, hex.EncodeToString(digest.Sum(nil)), f.Size, f.SHA256); err != nil {
		return because(ctx, err) // a connection that we gave up can end as if it were complete
	}
	return nil
}

// because puts the reason for which ctx ended in the place of the bare cancellation that net/http reports.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// ExplainFullDisk says what to do about an error of a disk that takes no more, while writing to dir; other errors pass.
// The errno stays reachable for errors.Is.
func ExplainFullDisk(err error, dir string) error {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, full) {
			return fmt.Errorf("no room in %s, free some or choose another folder: %w", dir, err)
		}
	}
	return err
}

// removeStale removes what killed downloads left in dir. No living download is older than its total timeout.
func removeStale(dir string, age time.Duration) {
	left, _ := filepath.Glob(filepath.Join(dir, tempPattern))
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > age {
			os.Remove(path)
		}
	}
}
