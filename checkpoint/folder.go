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

// Folder is an open folder of checkpoints. Its methods may be called from any goroutine; they wait for each other.
type Folder struct {
	dir      string
	options  Options // Log is never nil
	now      func() time.Time
	reserved atomic.Bool               // by a run
	best     atomic.Pointer[Retention] // of that run

	mu       sync.Mutex
	medium   medium
	readBack bool // a save was read back
	closed   bool
	settled  map[string]bool // metrics of which nothing is to be said any more: a save had them, or it was said that one had not
}

// Open opens a folder of checkpoints and removes what an earlier process left half done. A folder that is not there is
// made, unless it is opened ReadOnly. It is an error while another process writes there;
// the lock of a process that died is gone with it.
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
	f, err := openFS(fs, dir, options)
	if err != nil {
		return nil, errors.Join(err, fs.Close())
	}
	return f, nil
}

// openFS is [Open] with another file system than the computer's, for lazo's own tests.
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

// openMedium does not close the medium if it fails.
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

// writer returns the text that the process that writes has left in the folder. Each opening leaves another text, so
// processes that read the same text see the same folder. It is empty in a store, and before the first opening.
func (f *Folder) writer() (string, error) {
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

// reserve takes the folder for one run until that calls release. an error if another run has it.
func (f *Folder) reserve() (release func(), err error) {
	if !f.reserved.CompareAndSwap(false, true) {
		return nil, f.wrap(errReserved, "save a run")
	}
	return func() { f.best.Store(nil); f.reserved.Store(false) }, nil
}

// Close gives the lock back. The checkpoints stay.
func (f *Folder) Close() error { return f.close(false) }

// close leaves it readable for tensors that [Options].LeaveCut has left in their files, if that is wanted: a state may
// read them after the run that has opened the folder, in its first test for example.
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

// use is called with mu held.
func (f *Folder) use(writes bool) error {
	switch {
	case f.closed:
		return errClosed
	case writes && f.options.ReadOnly:
		return errReadOnly
	}
	return nil
}
