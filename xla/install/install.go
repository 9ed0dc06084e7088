package install

import (
	"cmp"
	"context"
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

// Errors that a caller can act on. Those of a failed download are the ones of the file system, the context, and package
// internal/fetch; their texts say what to do.
var (
	// ErrUnknownKind: no plugin of this name in the table.
	ErrUnknownKind = errors.New("unknown plugin")
	// ErrNoWheel: the table has the plugin, but not for this operating system and processor.
	ErrNoWheel = errors.New("no wheel for this platform")
	// ErrNotInstalled: there is nothing at the root; Install puts it there.
	ErrNotInstalled = errors.New("not installed")
	// ErrDamaged: what is installed is not what was installed; Install mends it.
	ErrDamaged = errors.New("damaged")
	// ErrUnsafe: a file or folder of the plugin, or one on the way there, belongs to others or can be written by them,
	// so its code cannot be trusted: docs/security.md.
	ErrUnsafe = owners.ErrUnsafe
	// ErrUnknownWheel: a local file that is not in the table, without its digest given.
	ErrUnknownWheel = errors.New("not in the table of known wheels")
	// ErrArchive: a wheel with members that no honest wheel has, or without those that the table names.
	ErrArchive = errors.New("refused archive")
	// ErrNotFound: the package index does not have the wheel.
	ErrNotFound = errors.New("not in the package index")
)

// Plugin is an installed plugin, or an implementation of MPI.
type Plugin struct {
	Kind     string // "cpu", "cpu106", "cpu81", "cuda", "cuda12", "cuda_compile", "tpu", "mpi", "mpich"
	Version  string // of the package that it came in; "" for a bare library
	API      string // version of PJRT's C API, as in "0.81"; "" of MPI, and if the file is not in the table
	Path     string // of the library, absolute
	SHA256   string // of the library, lower-case hex
	Licence  string // of the package, as in the table
	Platform string // operating system and processor, as in "linux/amd64"
	Stamp    string // changes when a file of the plugin was written to or replaced, whatever time it bears
	// Successor is the version that [Install] would put in this one's place, "" if this is what the table has, or a file
	// without a version. Until Install is called, what is installed stays in use.
	Successor string
}

// Launcher is the program that starts processes with an implementation of MPI, mpirun, as [MPI] and [MPICH] have it;
// "" of a plugin. It finds what it needs from its own place.
func (p Plugin) Launcher() string {
	if p.Kind != MPI && p.Kind != MPICH {
		return ""
	}
	return filepath.Join(filepath.Dir(filepath.Dir(p.Path)), "bin", "mpirun")
}

// Stage says what an installation is doing.
type Stage string

// The stages, in their order. For a plugin of several wheels all but the last come once for each.
const (
	Resolve  Stage = "resolve"  // asking the package index for the address
	Download Stage = "download" // Done and Total count bytes of the wheel
	Verify   Stage = "verify"   // reading a local file
	Extract  Stage = "extract"
	Probe    Stage = "probe"
)

// Event reports progress.
type Event struct {
	Stage       Stage
	File        string
	Done, Total int64
}

// Options change how Install works. The zero value downloads from the public index into DefaultRoot.
type Options struct {
	Root     string                                       // where plugins lie; "": DefaultRoot()
	From     string                                       // a wheel, a bare library, or a folder with the wheels: nothing is downloaded
	SHA256   string                                       // of From, in hex: allows a file that is not in the table
	IndexURL string                                       // a package index of one's own ("simple" pages, https); digests stay pinned
	Force    bool                                         // install again even if it is installed and intact
	Probe    func(ctx context.Context, path string) error // tries the library before it becomes the installed one; nil: no try
	Progress func(Event)                                  // nil: silent
	HTTP     *http.Client                                 // nil: TLS 1.2 or newer, proxy from the environment
	// IdleTimeout and TotalTimeout bound each download; 0: 30 s without a byte, 1 h.
	IdleTimeout, TotalTimeout time.Duration

	table   []Wheel                                            // tests: in place of plugins.tsv
	resolve func(ctx context.Context, w Wheel) (string, error) // tests: in place of the index
}

// DefaultRoot is the folder that plugins go to if none is given: lazo's own below the user's data folder.
func DefaultRoot() (string, error) {
	home, err := owners.Home()
	if err != nil {
		return "", fmt.Errorf("install: no home folder to install into, give one (--prefix DIR): %w", err)
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "lazo", "pjrt"), nil
	}
	return filepath.Join(home, ".local", "share", "lazo", "pjrt"), nil
}

// Install makes the plugin of the given kind the installed one, and returns it. If it is there already, intact and of
// the version in the table, nothing is done. Several processes may call it at once: one works, the others wait and find
// it done. On an error, what was installed before still is.
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
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return Plugin{}, err
	}
	if err := owners.Folder(folder); err != nil {
		return Plugin{}, err
	}
	unlock, err := lock(ctx, filepath.Join(folder, "lock"))
	if err != nil {
		return Plugin{}, err
	}
	defer unlock()

	keep := ""
	if old, err := readReceipt(folder); err == nil {
		keep = old.Dir // even if damaged: it might do, as long as there is nothing better
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

// layDown brings all the pieces into a new folder, complete, checked and tried, and describes it. The folder is not the
// installed one before its receipt is written.
func layDown(ctx context.Context, kind, folder string, pieces []piece, o Options) (_ *receipt, err error) {
	work, err := os.MkdirTemp(folder, workPrefix)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(work)
		}
	}()
	if err := os.Chmod(work, 0o750); err != nil {
		return nil, err
	}
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

// sweep removes what killed installations and older versions left in folder; nothing else that may lie there.
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

// word makes a version fit to be part of a file name.
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
