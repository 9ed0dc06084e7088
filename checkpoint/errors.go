package checkpoint

import (
	"errors"
	"fmt"
	"os"
)

var (
	// ErrNone: there is no checkpoint in the folder. It is not the error of a folder whose checkpoints are all damaged.
	ErrNone = errors.New("no checkpoint in the folder")
	// ErrExists: the step is saved already; see [Options.Overwrite].
	ErrExists = errors.New("the step is saved already")
	// ErrNewer: the checkpoint was written by a later lazo, in a format that this one cannot read.
	ErrNewer = errors.New("written by a newer lazo")
	// ErrNotPruned: the step was saved, and can be relied on, but older checkpoints could not be removed.
	ErrNotPruned = errors.New("saved, but old checkpoints are not removed")
	// ErrNoSection: the checkpoint has no such section.
	ErrNoSection = errors.New("no such section")
	// errNoStep: there is no checkpoint of that step.
	errNoStep = errors.New("no checkpoint of this step")
	// errReadOnly: the folder was opened to be read.
	errReadOnly = errors.New("the folder is open for reading alone")
	// errReserved: a run saves into the folder, so no other one can.
	errReserved = errors.New("another run saves into this folder")
	// errClosed: the folder was closed.
	errClosed = errors.New("the folder is closed")
)

// DamagedError is a checkpoint that is not what was saved.
type DamagedError struct {
	// Path is the file, relative to the folder of checkpoints.
	Path string
	// Tensor is the one whose content is wrong, "" if it is not one tensor's.
	Tensor string
	// Err is what is wrong. It wraps [safetensors.ErrLimit] where the file claims too much.
	Err error
}

func (e *DamagedError) Error() string {
	if e.Tensor == "" {
		return fmt.Sprintf("damaged: %s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("damaged: %s: tensor %q: %v", e.Path, e.Tensor, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// twiceError: a run has two options [Resume] for one folder.
type twiceError struct{ dir string }

func (e *twiceError) Error() string {
	return fmt.Sprintf("checkpoint: the run has two options checkpoint.Resume for the folder %s: give all Options to one of them, as "+
		"Resume(dir, Every(loop.Steps(500)), KeepBest(\"loss_test\"))", e.dir)
}

// Is an error of a folder that a run has taken.
func (e *twiceError) Is(err error) bool { return err == errReserved }

// lockedError: another process, or another [Folder] of this one, writes into the folder.
type lockedError struct {
	Dir string
	// PID and Host are the owner's, as it wrote them; 0 and "" if they cannot be read (yet).
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
