package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lazo-ml/lazo/internal/vfs"
)

// Folder is an open folder of checkpoints. It is safe for concurrent use.
type Folder struct {
	dir      string
	options  Options
	now      func() time.Time
	reserved atomic.Bool
	best     atomic.Pointer[Retention]

	mu       sync.Mutex
	medium   medium
	readBack bool
	closed   bool
	settled  map[string]bool
	outdated *Step
}

// The next save of this step replaces its checkpoint, which stays until the new one is complete.
func (f *Folder) replace(step Step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outdated = &step
}

// Open opens a folder, creates it unless it is ReadOnly, and removes incomplete checkpoints. It returns an error if
// another live process has it open for writing.
func Open(dir string, options Options) (*Folder, error) {
	f, err := openDir(dir, options)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: open %s: %w", dir, err)
	}
	return f, nil
}

func openDir(dir string, options Options) (*Folder, error) {
	switch {
	case dir == "":
		return nil, errors.New("the folder has no name; give a path")
	case dir == "~" || strings.HasPrefix(dir, "~/"):
		return nil, errors.New("only a shell expands ~; give the whole path")
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%w: it is a file, expected a folder of checkpoints; the file of a model is for flaxlike.Open and Load, other safetensors files for safetensors.ReadFile", syscall.ENOTDIR)
	}
	if !options.ReadOnly {
		if err := vfs.MkdirAll(dir); err != nil {
			return nil, err
		}
	}
	fs, err := vfs.OS(dir)
	if err != nil {
		return nil, err
	}
	f, err := openFS(fs, dir, options)
	if err != nil {
		return nil, errors.Join(err, fs.Close())
	}
	return f, nil
}

func openFS(fs vfs.FS, dir string, options Options) (*Folder, error) {
	d := &disk{fs: fs}
	if options.ReadOnly {
		return openMedium(context.Background(), d, dir, options)
	}
	var err error
	d.lock, err = fs.Lock(lockName, newOwner().String())
	if locked := (*vfs.LockedError)(nil); errors.As(err, &locked) {
		o := parseOwner(locked.Note)
		return nil, &lockedError{Dir: dir, PID: o.PID, Host: o.Host}
	} else if err != nil {
		return nil, fmt.Errorf("take the lock: %w", err)
	}
	f, err := openMedium(context.Background(), d, dir, options)
	if err != nil {
		return nil, errors.Join(err, d.lock.Close())
	}
	return f, nil
}

func openMedium(ctx context.Context, m medium, dir string, options Options) (*Folder, error) {
	options.Keep = slices.Clone(options.Keep)
	if name := options.ofRun(); name != "" {
		return nil, fmt.Errorf("%s is an option of Resume; give it there", name)
	}
	for i, k := range options.Keep {
		if err := k.check(); err != nil {
			return nil, fmt.Errorf("keep %d of %d: %w", i+1, len(options.Keep), err)
		}
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	f := &Folder{dir: dir, options: options, now: time.Now, medium: m, settled: map[string]bool{}}
	if options.ReadOnly {
		return f, nil
	}
	return f, f.clean(ctx)
}

func (f *Folder) clean(ctx context.Context) error {
	return f.medium.clean(ctx, func(name string) {
		f.options.Log.Info("checkpoint: removed files of an incomplete earlier save", "folder", f.dir, "name", name)
	})
}

type owner struct {
	PID   int    `json:"pid"`
	Host  string `json:"host"`
	Token int64  `json:"token"`
}

func newOwner() owner {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return owner{os.Getpid(), host, freshToken()}
}

func (o owner) String() string {
	text, _ := json.Marshal(o) // cannot fail
	return string(text)
}

func parseOwner(note string) owner {
	var o owner
	if err := json.Unmarshal([]byte(note), &o); err != nil {
		return owner{}
	}
	return o
}

// The lock file's text, new at each opening: processes that read the same text see the same folder.
func (f *Folder) writer() (string, error) {
	d, ok := f.medium.(*disk)
	if !ok {
		return "", nil
	}
	text, err := d.owner()
	return text, f.wrap(err, "read who writes")
}

// Dir returns the name given to [Open].
func (f *Folder) Dir() string { return f.dir }

// Options returns the folder's options. Log is not nil.
func (f *Folder) Options() Options {
	options := f.options
	options.Keep = slices.Clone(options.Keep)
	return options
}

func (f *Folder) reserve() (release func(), err error) {
	if !f.reserved.CompareAndSwap(false, true) {
		return nil, f.wrap(errReserved, "save a run")
	}
	return func() { f.best.Store(nil); f.reserved.Store(false) }, nil
}

func (f *Folder) wrap(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("checkpoint: %s in %s: %w", fmt.Sprintf(doing, args...), f.dir, err)
}

// Close releases the lock.
func (f *Folder) Close() error { return f.close(false) }

func (f *Folder) close(readable bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	if err := f.medium.close(readable); err != nil {
		return fmt.Errorf("checkpoint: close %s: %w", f.dir, err)
	}
	return nil
}

// use requires mu.
func (f *Folder) use(writes bool) error {
	switch {
	case f.closed:
		return errClosed
	case writes && f.options.ReadOnly:
		return errReadOnly
	}
	return nil
}

func (f *Folder) opener(ctx context.Context) opener {
	return func(path string) (file, error) { return f.medium.open(ctx, path) }
}
