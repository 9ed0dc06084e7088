package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

var (
	// ErrNone: the folder has no checkpoint, not even a damaged one.
	ErrNone = errors.New("no checkpoint in the folder")
	// ErrNewer: a newer lazo wrote the checkpoint, in an unknown format.
	ErrNewer     = errors.New("written by a newer lazo")
	ErrNotPruned = errors.New("saved, but old checkpoints are not removed")
	ErrNoSection = errors.New("no such section")
	errNoStep    = errors.New("no checkpoint of this step")
	errReadOnly  = errors.New("the folder is open read-only")
	errReserved  = errors.New("another run saves into this folder")
	errClosed    = errors.New("the folder is closed")
)

type existsError struct{}

func (existsError) Error() string     { return "the step is saved already" }
func (existsError) Is(err error) bool { return err == fs.ErrExist }

// DamagedError reports a checkpoint that differs from the saved content.
type DamagedError struct {
	// Path is relative to the folder.
	Path string
	// Tensor is damaged, if not "".
	Tensor string
	// Err wraps [safetensors.ErrLimit] if a size exceeds a limit.
	Err error
}

func (e *DamagedError) Error() string {
	if e.Tensor == "" {
		return fmt.Sprintf("damaged: %s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("damaged: %s: tensor %q: %v", e.Path, e.Tensor, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

type twiceError struct{ dir string }

func (e *twiceError) Error() string {
	return fmt.Sprintf("checkpoint: the run has two options checkpoint.Resume for the folder %s: give all Options to one of them, as "+
		"Resume(dir, Every(loop.Steps(500)), KeepBest(\"loss_test\"))", e.dir)
}

func (e *twiceError) Is(err error) bool { return err == errReserved }

type lockedError struct {
	Dir string
	// PID and Host are the owner's; 0 and "" if unknown.
	PID  int
	Host string
}

func (e *lockedError) Error() string {
	if host, err := os.Hostname(); err == nil && e.PID == os.Getpid() && e.Host == host {
		return fmt.Sprintf("checkpoint: %s: this process has opened the folder already and writes there: use that Folder (its method Resume is the "+
			"option for a run), or close it first; another run of this process may have opened it, by checkpoint.Resume", e.Dir)
	}
	owner := "another process"
	if e.PID != 0 {
		owner = fmt.Sprintf("process %d on host %q", e.PID, e.Host)
	}
	return fmt.Sprintf("checkpoint: %s: %s writes there; wait for it or stop it, or open the folder with ReadOnly", e.Dir, owner)
}

func isDamaged(err error) bool {
	return errors.As(err, new(*DamagedError))
}
