package install

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/internal/fetch"
	"github.com/lazo-ml/lazo/internal/owners"
)

var (
	ErrUnknownKind  = errors.New("unknown plugin")
	ErrNoWheel      = errors.New("no wheel for this platform")
	ErrNotInstalled = errors.New("not installed")
	ErrDamaged      = errors.New("damaged")
	// ErrUnsafe reports a file or folder that others may change: docs/security.md.
	ErrUnsafe       = owners.ErrUnsafe
	ErrUnknownWheel = errors.New("not in the table of known wheels")
	ErrArchive      = errors.New("refused archive")
	ErrNotFound     = errors.New("not in the package index")
)

type Plugin struct {
	Kind     string // "cpu", "cpu106", "cpu81", "cuda", "cuda12", "cuda_compile", "tpu", "mpi", "mpich"
	Version  string // package's; "" for a bare library
	API      string
	Path     string // absolute
	SHA256   string
	Licence  string
	Platform string
	Stamp    string // changes with any file, even if its time is reset
	// Successor is the version with which [Install] would replace this one, or "".
	Successor string
}

// Launcher returns mpirun's path for [MPI] and [MPICH], otherwise "". mpirun finds its files relative to itself.
func (p Plugin) Launcher() string {
	if p.Kind != MPI && p.Kind != MPICH {
		return ""
	}
	return filepath.Join(filepath.Dir(filepath.Dir(p.Path)), "bin", "mpirun")
}

type Stage string

const (
	Wait     Stage = "wait"    // another installation holds File
	Resolve  Stage = "resolve" // asking the package index
	Download Stage = "download"
	Verify   Stage = "verify"
	Extract  Stage = "extract"
	Probe    Stage = "probe"
)

type Event struct {
	Stage       Stage
	File        string
	Done, Total int64
}

// Options configure Install. The zero value downloads from the public index into DefaultRoot.
type Options struct {
	Root     string
	From     string
	SHA256   string // of From, in hex: allows an unknown file
	IndexURL string // package index ("simple" pages, https); digests still apply
	Force    bool
	Probe    func(ctx context.Context, path string) error // must succeed before installation; nil: none
	Progress func(Event)
	HTTP     *http.Client // nil: TLS 1.2 or newer, proxy from the environment
	// IdleTimeout and TotalTimeout limit a download; 0: 30 s without a byte, 1 h.
	IdleTimeout, TotalTimeout time.Duration

	table   []Wheel
	resolve func(ctx context.Context, w Wheel) (string, error)
}

// DefaultRoot returns $LAZO_HOME, or lazo's folder in the user's data folder.
func DefaultRoot() (string, error) {
	if dir, err := owners.Plugins(); dir != "" || err != nil {
		return dir, err
	}
	home, err := owners.Home()
	if err != nil {
		return "", fmt.Errorf("no folder of plugins: set LAZO_HOME to one, or HOME: %w", err)
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "lazo", "pjrt"), nil
	}
	return filepath.Join(home, ".local", "share", "lazo", "pjrt"), nil
}

// Install changes nothing if the table's version is installed and intact. Concurrent processes wait for one. An error
// leaves the previous installation.
func Install(ctx context.Context, kind string, o Options) (_ Plugin, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("install: %s: %w", kind, err)
		}
	}()
	if o.Progress == nil {
		o.Progress = func(Event) {}
	}
	table, err := o.wheels()
	if err != nil {
		return Plugin{}, err
	}
	pieces, err := plan(kind, table, o)
	if err != nil {
		return Plugin{}, err
	}
	folder, err := folderOf(kind, o.Root)
	if err != nil {
		return Plugin{}, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return Plugin{}, err
	}
	if err := owners.Folder(folder); err != nil {
		return Plugin{}, err
	}
	unlock, err := lock(ctx, filepath.Join(folder, "lock"), o.Progress)
	if err != nil {
		return Plugin{}, err
	}
	defer unlock()

	keep := ""
	if old, err := readReceipt(folder); err == nil {
		keep = old.Dir // until there is a better one
		if !o.Force && slices.Equal(old.Wheels, digests(pieces)) && old.verify(ctx, folder, table, full) == nil {
			sweep(folder, keep)
			return old.plugin(folder, table), nil
		}
	}
	sweep(folder, keep)
	fresh, err := layDown(ctx, kind, folder, pieces, o)
	if err != nil {
		return Plugin{}, err
	}
	if err := fresh.write(folder); err != nil {
		return Plugin{}, err
	}
	sweep(folder, fresh.Dir)
	return fresh.plugin(folder, table), nil
}

// Without a receipt, the folder is not installed.
func layDown(ctx context.Context, kind, folder string, pieces []piece, o Options) (_ *receipt, err error) {
	work := filepath.Join(folder, workPrefix+rand.Text())
	if err := os.Mkdir(work, 0o755); err != nil { // MkdirTemp's are closed to other users
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(work)
		}
	}()
	tree, err := os.OpenRoot(work)
	if err != nil {
		return nil, err
	}
	defer tree.Close()

	r := &receipt{Format: receiptFormat, Kind: kind, Platform: platform(), Wheels: digests(pieces)}
	for _, p := range pieces {
		files, err := p.layDown(ctx, folder, tree, o)
		if err != nil {
			return nil, err
		}
		r.Files = append(r.Files, files...)
		if p.Library != "" {
			r.Version, r.API, r.Licence, r.Library = p.Version, p.API, p.Licence, p.Library
		}
	}
	library := r.file(r.Library)
	if library == nil {
		return nil, fmt.Errorf("%w: no library among the files", ErrArchive)
	}
	for _, p := range pieces {
		if p.LibrarySHA256 != "" && p.LibrarySHA256 != library.SHA256 {
			return nil, fmt.Errorf("library %s of %s: %w: SHA-256 %s, want %s", r.Library, p.File, fetch.ErrDigest, library.SHA256, p.LibrarySHA256)
		}
	}
	if err := readBack(ctx, work, r.Files); err != nil {
		return nil, err
	}
	if o.Probe != nil {
		o.Progress(Event{Stage: Probe, File: r.Library})
		if err := o.Probe(ctx, filepath.Join(work, filepath.FromSlash(r.Library))); err != nil {
			return nil, fmt.Errorf("the new plugin does not work here, so it was not installed: %w", err)
		}
	}
	r.Dir = dirPrefix + strings.Join([]string{word(r.Version), library.SHA256[:12], strings.TrimPrefix(filepath.Base(work), workPrefix)}, "-")
	if err := os.Rename(work, filepath.Join(folder, r.Dir)); err != nil {
		return nil, err
	}
	return r, syncDir(folder)
}

const (
	workPrefix = ".new-"
	dirPrefix  = "pjrt-"
)

// sweep removes leftovers and older versions only.
func sweep(folder, keep string) {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		name := e.Name()
		for _, ours := range []string{workPrefix, dirPrefix, ".fetch-", receiptTemp} {
			if strings.HasPrefix(name, ours) && name != keep {
				os.RemoveAll(filepath.Join(folder, name))
			}
		}
	}
}

func word(version string) string {
	version = cmp.Or(version, "local")
	return strings.Map(func(r rune) rune {
		if r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, version)
}

func folderOf(kind, root string) (string, error) {
	if root == "" {
		home, err := DefaultRoot()
		if err != nil {
			return "", err
		}
		root = home
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	return filepath.Join(root, kind), nil
}
