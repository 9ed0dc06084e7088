package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/gomlx/go-xla/installer"

	"github.com/lazo-ml/lazo/internal/fetch"
	"github.com/lazo-ml/lazo/internal/listed"
)

const (
	indexTimeout = time.Minute
	pageLimit    = 16 << 20
)

type piece struct {
	Wheel
	local string // "": download it
	bare  bool
}

func digests(pieces []piece) []string {
	var list []string
	for _, p := range pieces {
		list = append(list, p.SHA256)
	}
	return list
}

func plan(kind string, table []Wheel, o Options) ([]piece, error) {
	rows, err := wheelsFor(kind, table)
	if err != nil && !(errors.Is(err, ErrNoWheel) && o.From != "" && o.SHA256 != "") {
		return nil, err
	}
	if o.From == "" {
		if o.SHA256 != "" {
			return nil, errors.New("a digest (--sha256) is only for a local file (--from): the digests of downloads are in the table")
		}
		var pieces []piece
		for _, w := range rows {
			pieces = append(pieces, piece{Wheel: w})
		}
		return pieces, nil
	}
	from, err := filepath.Abs(o.From)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(from)
	if err != nil {
		return nil, err
	}
	o.Progress(Event{Stage: Verify, File: from})
	if info.IsDir() {
		return planFolder(from, rows, o.SHA256)
	}
	return planFile(kind, from, rows, o.SHA256)
}

func planFolder(from string, rows []Wheel, digest string) ([]piece, error) {
	if digest != "" {
		return nil, fmt.Errorf("%s is a folder: a digest (--sha256) can only be given for one file", from)
	}
	var pieces []piece
	var missing []error
	for _, w := range rows {
		p := piece{Wheel: w, local: filepath.Join(from, w.File)}
		missing = append(missing, fetch.VerifyFile(p.local, w.Size, w.SHA256))
		pieces = append(pieces, p)
	}
	return pieces, errors.Join(missing...)
}

func planFile(kind, from string, rows []Wheel, digest string) ([]piece, error) {
	_, got, err := fetch.Digest(from, maxUnpacked)
	if err != nil {
		return nil, err
	}
	if digest != "" && !strings.EqualFold(digest, got) {
		return nil, fmt.Errorf("%s: %w: SHA-256 %s, want %s", from, fetch.ErrDigest, got, digest)
	}
	for _, w := range rows {
		switch {
		case w.SHA256 == got && len(rows) > 1:
			return nil, fmt.Errorf("%s is one of the %d wheels of this plugin: give the folder that holds them all", from, len(rows))
		case w.SHA256 == got:
			return []piece{{Wheel: w, local: from}}, nil
		case w.LibrarySHA256 == got:
			w.Library, w.SHA256, w.File = filepath.Base(from), got, filepath.Base(from)
			return []piece{{Wheel: w, local: from, bare: true}}, nil
		}
	}
	if digest == "" {
		return nil, fmt.Errorf("%s: %w: its SHA-256 is %s; if that is the intended file, give it by --sha256", from, ErrUnknownWheel, got)
	}
	name := filepath.Base(from)
	if !strings.HasSuffix(name, ".whl") {
		return []piece{{Wheel: Wheel{Kind: kind, File: name, SHA256: got, Library: name}, local: from, bare: true}}, nil
	}
	if len(rows) != 1 {
		return nil, fmt.Errorf("%s: %w: the table does not list which of its files to use on this platform, so unpack it and give the library", from, ErrUnknownWheel)
	}
	// Another version: the same members, an unknown library.
	w := rows[0]
	w.File, w.SHA256, w.LibrarySHA256, w.API, w.Version = name, got, "", "", ""
	if part := strings.Split(name, "-"); len(part) > 1 {
		w.Version = part[1]
	}
	return []piece{{Wheel: w, local: from}}, nil
}

func (p piece) layDown(ctx context.Context, folder string, tree *os.Root, o Options) ([]fileRecord, error) {
	wheel := p.local
	if wheel == "" {
		downloaded, err := p.download(ctx, folder, o)
		if err != nil {
			return nil, err
		}
		defer os.Remove(downloaded)
		wheel = downloaded
	}
	o.Progress(Event{Stage: Extract, File: p.File})
	if p.bare {
		source, err := os.Open(wheel)
		if err != nil {
			return nil, err
		}
		defer source.Close()
		record, err := writeFile(ctx, tree, p.Library, 0o644, source)
		if err == nil && record.SHA256 != p.SHA256 {
			err = fmt.Errorf("%s changed while it was read: %w", wheel, fetch.ErrDigest)
		}
		return []fileRecord{record}, err
	}
	files, err := extract(ctx, wheel, p.Members, tree)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.File, err)
	}
	return files, nil
}

func (p piece) download(ctx context.Context, folder string, o Options) (string, error) {
	resolve := o.resolve
	switch {
	case resolve != nil:
	case o.IndexURL != "":
		resolve = o.askIndex
	default:
		resolve = o.askPublicIndex
	}
	o.Progress(Event{Stage: Resolve, File: p.File})
	address, err := resolve(ctx, p.Wheel)
	if err != nil {
		return "", err
	}
	client := o.client()
	client.Progress = func(done, total int64) {
		o.Progress(Event{Stage: Download, File: p.File, Done: done, Total: total})
	}
	return client.Download(ctx, fetch.File{Name: p.File, URL: address, Size: p.Size, SHA256: p.SHA256}, folder)
}

func (o Options) client() fetch.Client {
	return fetch.Client{HTTP: o.HTTP, IdleTimeout: o.IdleTimeout, TotalTimeout: o.TotalTimeout}
}

func (o Options) askPublicIndex(ctx context.Context, w Wheel) (string, error) {
	page, err := publicPage(w.Package)
	if err != nil {
		return "", err
	}
	text, err := o.page(ctx, page, w, " (offline? then use --from FILE; a mirror: --index-url URL)")
	if err != nil {
		return "", err
	}
	var info installer.PipPackageInfo
	if err := json.Unmarshal(text, &info); err != nil {
		return "", fmt.Errorf("read the package index's page of %s: %w", w.Package, listed.Short(err))
	}
	return address(&info, w)
}

// publicPage reads go-xla's error about an impossible name; nothing is sent.
func publicPage(name string) (string, error) {
	const impossible = "\x7f"
	_, err := installer.GetPipInfo(impossible)
	var where *url.Error
	if !errors.As(err, &where) || strings.Count(where.URL, impossible) != 1 {
		return "", errors.New("go-xla does not export the address of the public package index: give one (--index-url URL), or a file (--from FILE)")
	}
	return strings.Replace(where.URL, impossible, url.PathEscape(name), 1), nil
}

func (o Options) page(ctx context.Context, address string, w Wheel, advice string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, indexTimeout, fmt.Errorf("no answer within %v: %w", indexTimeout, fetch.ErrTimeout))
	defer cancel()
	text, err := o.client().Get(ctx, address, "", pageLimit)
	if err != nil {
		return nil, fmt.Errorf("ask the package index for %s%s: %w", w.Package, advice, err)
	}
	return text, nil
}

func address(info *installer.PipPackageInfo, w Wheel) (string, error) {
	base, err := url.Parse(info.Info.ProjectURL)
	if err != nil {
		base = new(url.URL)
	}
	for _, release := range info.Releases[w.Version] {
		if target, err := base.Parse(release.URL); err == nil && release.Filename == w.File {
			return target.String(), nil
		}
	}
	return "", fmt.Errorf("%s: %w: %s has no such file in version %s", w.File, ErrNotFound, w.Package, w.Version)
}

var href = regexp.MustCompile(`(?i)<a\s[^>]*href\s*=\s*["']([^"']+)["']`)

func (o Options) askIndex(ctx context.Context, w Wheel) (string, error) {
	page, err := fetch.Parse(strings.TrimSuffix(o.IndexURL, "/") + "/" + w.Package + "/")
	if err != nil {
		return "", fmt.Errorf("the index (--index-url): %w", err)
	}
	text, err := o.page(ctx, page.String(), w, "")
	if err != nil {
		return "", err
	}
	for _, link := range href.FindAllSubmatch(text, -1) {
		target, err := page.Parse(html.UnescapeString(string(link[1])))
		if err == nil && path.Base(target.Path) == w.File {
			return target.String(), nil
		}
	}
	return "", fmt.Errorf("%s: %w: %s does not link to it", w.File, ErrNotFound, fetch.Redact(page.String()))
}
