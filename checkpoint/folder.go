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
	"time"

	"github.com/lazo-ml/lazo/internal/vfs"
)

// Options are how a folder is used. The zero Options keep all checkpoints.
type Options struct {
	// Keep says which checkpoints stay: those that any of them keeps. None keeps all. The newest complete checkpoint
	// stays in any case, as does the one just saved.
	Keep []Retention
	// Overwrite lets Save put a new checkpoint in the place of one with the same step. Without, that is [ErrExists],
	// unless the one there is damaged.
	Overwrite bool
	// ReadBack says which saves are read again, and their checksums tried, before they count: some 15 % of the time of
	// a save.
	ReadBack ReadBack
	// LeaveCut has Newest, Load and Best leave tensors that are cut over several processes in their files, when they have
	// checked them: Write, in place of Data, reads one, whole, as long as the folder is open and the checkpoint there. So
	// a state can be restored that no memory has whole.
	LeaveCut bool
	// ReadOnly takes no lock and changes nothing, so that checkpoints can be read while another process saves some.
	ReadOnly bool
	// Log hears of what was cleaned away, of damaged checkpoints that were passed over, and of saves that failed and
	// are tolerated. Nil is nobody.
	Log *slog.Logger
}

// ReadBack says which saves of a folder are read again. That finds a disk, a store or a memory that changes what it is
// given, not one that does so later: the bytes come from the computer's cache, as a rule.
type ReadBack int

const (
	// ReadBackFirst is the first save since the folder was opened.
	ReadBackFirst ReadBack = iota
	ReadBackEach
	ReadBackNone
)

// Folder is an open folder of checkpoints. Its methods may be called from any goroutine; they wait for each other.
type Folder struct {
	dir      string
	options  Options // Log is never nil
	now      func() time.Time
	reserved atomic.Bool // by a run

	mu       sync.Mutex
	medium   medium
	readBack bool // a save was read back
	closed   bool
	settled  map[string]bool // metrics of which nothing is to be said any more: a save had them, or it was said that one had not
}

// Open opens a folder of checkpoints and removes what an earlier process left half done. A folder that is not there is
// made, unless it is opened ReadOnly. A [*LockedError] says that another process writes there; the lock of a process
// that died is gone with it.
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
		return nil, errors.New("only a shell knows what ~ is; give the whole path")
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
	f, err := OpenFS(fs, dir, options)
	if err != nil {
		return nil, errors.Join(err, fs.Close())
	}
	return f, nil
}

// OpenFS is [Open] with another file system than the computer's, for lazo's own tests.
func OpenFS(fs vfs.FS, dir string, options Options) (*Folder, error) {
	d := &disk{fs: fs}
	if options.ReadOnly {
		return openMedium(context.Background(), d, dir, options)
	}
	var err error
	d.lock, err = fs.Lock(lockName, newOwner().String())
	if locked := (*vfs.LockedError)(nil); errors.As(err, &locked) {
		o := parseOwner(locked.Note)
		return nil, &LockedError{Dir: dir, PID: o.PID, Host: o.Host}
	} else if err != nil {
		return nil, fmt.Errorf("take the lock: %w", err)
	}
	f, err := openMedium(context.Background(), d, dir, options)
	if err != nil {
		return nil, errors.Join(err, d.lock.Close())
	}
	return f, nil
}

// openMedium does not close the medium if it fails.
func openMedium(ctx context.Context, m medium, dir string, options Options) (*Folder, error) {
	options.Keep = slices.Clone(options.Keep)
	if b := options.ReadBack; b < ReadBackFirst || b > ReadBackNone {
		return nil, fmt.Errorf("ReadBack(%d): expected ReadBackFirst, ReadBackEach or ReadBackNone", b)
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

// owner is what stands in the lock file.
type owner struct {
	PID   int    `json:"pid"`
	Host  string `json:"host"`
	Token int64  `json:"token"` // another one for each time that a folder is opened
}

func newOwner() owner {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return owner{os.Getpid(), host, freshToken()}
}

func (o owner) String() string {
	text, _ := json.Marshal(o) // a number and a text
	return string(text)
}

// parseOwner makes nothing of a note that is none: it is for a message.
func parseOwner(note string) owner {
	var o owner
	if err := json.Unmarshal([]byte(note), &o); err != nil {
		return owner{}
	}
	return o
}

// Writer is what the process that has the folder open to write has left in it, which is another text each time that it
// is opened: who reads the same text sees the same folder. It is empty in a store, and where nobody has written yet.
func (f *Folder) Writer() (string, error) {
	d, ok := f.medium.(*disk)
	if !ok {
		return "", nil
	}
	text, err := d.owner()
	return text, f.wrap(err, "read who writes")
}

// Dir is the folder's name, as it was opened.
func (f *Folder) Dir() string { return f.dir }

// Options are those that the folder was opened with. Log is never nil.
func (f *Folder) Options() Options {
	options := f.options
	options.Keep = slices.Clone(options.Keep)
	return options
}

// Reserve takes the folder for one run until that calls release. [ErrReserved] if another run has it.
func (f *Folder) Reserve() (release func(), err error) {
	if !f.reserved.CompareAndSwap(false, true) {
		return nil, f.wrap(ErrReserved, "save a run")
	}
	return func() { f.reserved.Store(false) }, nil
}

// Close gives the lock back. The checkpoints stay.
func (f *Folder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	if err := f.medium.close(); err != nil {
		return fmt.Errorf("checkpoint: close %s: %w", f.dir, err)
	}
	return nil
}

// use is called with mu held.
func (f *Folder) use(writes bool) error {
	switch {
	case f.closed:
		return ErrClosed
	case writes && f.options.ReadOnly:
		return ErrReadOnly
	}
	return nil
}
