// Package fetch downloads files of a known digest over HTTPS, also after redirects, with proxies from the environment
// as in net/http. It verifies a file while it streams, and syncs it. After an error no file is left, but that of
// [Client.Resume].
package fetch

import (
	"cmp"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
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

	"github.com/lazo-ml/lazo/internal/listed"
)

var (
	// ErrDigest: do not use the bytes; try another source.
	ErrDigest = errors.New("wrong digest")
	// ErrSize: the size is not as pinned, or above the limit.
	ErrSize      = errors.New("wrong size")
	ErrStatus    = errors.New("unexpected status")
	ErrInsecure  = errors.New("not an https address")
	ErrRedirects = errors.New("too many redirects")
	// ErrTimeout: the idle or total timeout has passed. The context's end is a different error.
	ErrTimeout = errors.New("timed out")
)

const (
	defaultIdleTimeout  = 30 * time.Second
	defaultTotalTimeout = time.Hour
	defaultLimit        = 4 << 30
	maxRedirects        = 10
	tempPattern         = ".fetch-*"
)

type File struct {
	Name   string // for messages; default: last part of URL
	URL    string
	Size   int64  // bytes; 0: unknown, limited by Client.Limit
	SHA256 string // lower-case hex
	Blob   string // instead of SHA256: the SHA-1 of the git blob, of Size bytes
	Token  string
}

func (f File) digest() (sum hash.Hash, want string, err error) {
	sum, want = sha256.New(), f.SHA256
	if want == "" && f.Size > 0 {
		sum, want = sha1.New(), f.Blob
		fmt.Fprintf(sum, "blob %d\x00", f.Size)
	}
	if digest, err := hex.DecodeString(want); err != nil || len(digest) != sum.Size() || strings.ToLower(want) != want {
		return nil, "", fmt.Errorf("digest %q is not %d lower-case hex digits: %w", want, 2*sum.Size(), ErrDigest)
	}
	return sum, want, nil
}

func (f File) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("fetch: %s from %s: %w", listed.Cut(cmp.Or(f.Name, path.Base(Redact(f.URL)))), Redact(f.URL), listed.Short(err))
}

// Client is safe for concurrent use if Progress is.
type Client struct {
	HTTP         *http.Client            // default: NewHTTPClient
	IdleTimeout  time.Duration           // for the next byte and headers; default 30 s
	TotalTimeout time.Duration           // default 1 h
	Limit        int64                   // bytes, for files of unknown size; default 4 GiB
	Progress     func(done, total int64) // bytes after each read; total 0: unknown
	create       func(string) (*os.File, error)
}

// Download downloads f into a new file in dir (which must exist), mode 0600, and returns its path. The caller renames
// it. A killed process may leave a file; a later Download into dir removes it when it is older than the total timeout.
func (c Client) Download(ctx context.Context, f File, dir string) (_ string, err error) {
	c = c.withDefaults()
	defer func() { err = f.explain(err) }()
	sum, _, err := f.digest()
	if err != nil {
		return "", err
	}
	removeStale(dir, c.TotalTimeout)
	out, err := c.create(dir)
	if err != nil {
		return "", ExplainFullDisk(err, dir)
	}
	if err := errors.Join(c.receive(ctx, f, out, sum, 0), out.Close()); err != nil {
		os.Remove(out.Name())
		return "", ExplainFullDisk(err, dir)
	}
	return out.Name(), nil
}

func (c Client) receive(ctx context.Context, f File, out *os.File, sum hash.Hash, done int64) error {
	ctx, alive, stop := c.watched(ctx)
	defer stop()
	body, from, err := c.open(ctx, f, done)
	if err != nil {
		return because(ctx, err)
	}
	defer body.Close()
	if from < done {
		if sum, _, err = f.digest(); err != nil {
			return err
		}
		if err := again(out); err != nil {
			return err
		}
	}
	if err := c.copy(ctx, out, observed{body, alive}, f, sum, from); err != nil {
		return err
	}
	return ExplainFullDisk(out.Sync(), filepath.Dir(out.Name()))
}

// The idle timeout counts from the last call of alive.
func (c Client) watched(ctx context.Context) (_ context.Context, alive, stop func()) {
	ctx, cancelTotal := context.WithTimeoutCause(ctx, c.TotalTimeout, fmt.Errorf("%w: not finished after %v", ErrTimeout, c.TotalTimeout))
	ctx, cancel := context.WithCancelCause(ctx)
	idle := time.AfterFunc(c.IdleTimeout, func() { cancel(fmt.Errorf("%w: no data for %v", ErrTimeout, c.IdleTimeout)) })
	return ctx, func() { idle.Reset(c.IdleTimeout) }, func() {
		idle.Stop()
		cancel(nil)
		cancelTotal()
	}
}

type observed struct {
	io.Reader
	alive func()
}

func (o observed) Read(p []byte) (n int, err error) {
	if n, err = o.Reader.Read(p); n > 0 {
		o.alive()
	}
	return n, err
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

func NewHTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: defaultIdleTimeout,
		ForceAttemptHTTP2:   true,
		DisableKeepAlives:   true,
	}}
}

// Get returns a page without a digest, of at most limit bytes.
func (c Client) Get(ctx context.Context, address, token string, limit int64) (text []byte, err error) {
	c = c.withDefaults()
	ctx, alive, stop := c.watched(ctx)
	defer stop()
	c.Limit = limit
	body, _, err := c.open(ctx, File{URL: address, Token: token}, 0)
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(observed{body, alive}, limit+1))
		body.Close()
	}
	if err == nil {
		err = context.Cause(ctx) // an aborted connection may look complete
	}
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%w: more than %d bytes", ErrSize, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch: %s: %w", Redact(address), listed.Short(because(ctx, err)))
	}
	return text, nil
}

// from is 0 if the server sends all.
func (c Client) open(ctx context.Context, f File, at int64) (_ io.ReadCloser, from int64, err error) {
	address, err := Parse(f.URL)
	if err != nil {
		return nil, 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, 0, bare(err)
	}
	if f.Token != "" {
		request.Header.Set("Authorization", "Bearer "+f.Token)
	}
	if at > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", at))
	}
	// The digest is of the uncompressed file.
	request.Header.Set("Accept-Encoding", "identity")
	client := *c.HTTP
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if next.URL.Scheme != "https" {
			return fmt.Errorf("redirect to %s: %w", Redact(next.URL.String()), ErrInsecure)
		}
		if len(via) >= maxRedirects {
			return fmt.Errorf("%w: %d", ErrRedirects, len(via))
		}
		if !strings.EqualFold(next.URL.Host, address.Host) { // net/http keeps it for subdomains and other ports
			next.Header.Del("Authorization")
		}
		return nil
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, 0, explainCertificate(bare(err))
	}
	if at > 0 && response.StatusCode == http.StatusPartialContent && strings.HasPrefix(response.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", at)) {
		from = at
	} else if response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%w: %s, want 200", ErrStatus, response.Status)
	}
	switch size := from + response.ContentLength; {
	case err != nil:
	case f.Size > 0 && response.ContentLength >= 0 && size != f.Size:
		err = fmt.Errorf("%w: the server offers %d bytes, want %d", ErrSize, size, f.Size)
	case f.Size <= 0 && size > c.Limit:
		err = fmt.Errorf("%w: the server offers %d bytes, the limit is %d", ErrSize, size, c.Limit)
	}
	if err != nil {
		response.Body.Close()
		return nil, 0, err
	}
	return response.Body, from, nil
}

// Minimal containers lack certificates of authorities.
func explainCertificate(err error) error {
	if errors.As(err, new(x509.UnknownAuthorityError)) || errors.As(err, new(x509.SystemRootsError)) {
		return fmt.Errorf("no certificate of this machine vouches for the server: install the package ca-certificates, "+
			"or name the file of a proxy's certificates by SSL_CERT_FILE: %w", err)
	}
	return err
}

func (c Client) copy(ctx context.Context, out *os.File, body io.Reader, f File, sum hash.Hash, done int64) error {
	most := f.Size
	if most <= 0 {
		most = c.Limit
	}
	buffer := make([]byte, 256<<10)
	for {
		n, readErr := body.Read(buffer)
		if n > 0 {
			done += int64(n)
			if done > most {
				return fmt.Errorf("%w: more than %d bytes", ErrSize, most)
			}
			sum.Write(buffer[:n])
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
	if err := judge(done, hex.EncodeToString(sum.Sum(nil)), f.Size, cmp.Or(f.SHA256, f.Blob)); err != nil {
		return because(ctx, err) // an aborted connection may look complete
	}
	return nil
}

func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// ExplainFullDisk adds advice to a full disk's error and keeps its errno. It returns other errors unchanged.
func ExplainFullDisk(err error, dir string) error {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, full) {
			return fmt.Errorf("no room in %s, free some or choose another folder: %w", dir, err)
		}
	}
	return err
}

// Running downloads are younger than the total timeout.
func removeStale(dir string, age time.Duration) {
	left, _ := filepath.Glob(filepath.Join(dir, tempPattern))
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > age {
			os.Remove(path)
		}
	}
}
