package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"time"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/shares"
	"github.com/lazo-ml/lazo/internal/shield"
	"github.com/lazo-ml/lazo/loop"
)

func openTogether(dir string, options Options, job loop.Job) (folder *Folder, err error) {
	writes := job == nil || job.Rank() == 0
	options.LeaveSharded = options.LeaveSharded || job != nil && job.Size() > 1
	if writes {
		folder, err = Open(dir, options)
	}
	if err := together(job, "open "+dir, err); err != nil {
		return nil, errors.Join(err, closed(folder))
	}
	if !writes {
		options.ReadOnly = true
		folder, err = Open(dir, options)
	}
	if err := together(job, "open "+dir, err); err != nil {
		return nil, errors.Join(err, closed(folder))
	}
	if err := together(job, "see the folder "+dir+" of rank 0", sameFolder(folder, job)); err != nil {
		return nil, errors.Join(err, closed(folder))
	}
	return folder, nil
}

func sameFolder(folder *Folder, job loop.Job) error {
	if job == nil {
		return nil
	}
	text, err := folder.writer()
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, text)
	own := int64(hash.Sum64() >> 1)
	number, failed, err := decided(job, own, err)
	if err != nil || failed || number == own {
		return err
	}
	host, _ := os.Hostname()
	return fmt.Errorf("checkpoint: open %s: rank %d (host %s) sees another folder of that name than rank 0 (here the mark of the writing process is %q): expected one that all ranks see, as on a shared file system",
		folder.Dir(), job.Rank(), host, text)
}

func closed(folder *Folder) error {
	if folder == nil {
		return nil
	}
	return folder.Close()
}

// decided sends rank 0's number, not negative, to all. failed: rank 0 has an error, which only it returns.
func decided(job loop.Job, number int64, err error) (_ int64, failed bool, _ error) {
	if job == nil {
		return number, err != nil, err
	}
	words := []int64{-1, 0}
	if job.Rank() == 0 {
		if words[0] = number; err != nil {
			words[1] = 1
		}
	}
	if agreed := agree(job, "the step that rank 0 saves or loads", words); agreed != nil {
		return 0, true, errors.Join(err, agreed)
	}
	return words[0], words[1] > 0, err
}

func agree(job loop.Job, what string, words []int64) (err error) {
	if watched, ok := job.(abilities.Watched); ok {
		err = watched.AgreeOn(what, words)
	} else {
		err = job.Agree(words)
	}
	if err != nil {
		return fmt.Errorf("checkpoint: agreement with the other processes: %w", err)
	}
	return nil
}

const saveLimit = 10 * time.Minute

func busy(job loop.Job) (done func()) {
	if watched, ok := job.(abilities.Watched); ok {
		return watched.Busy("save", saveLimit)
	}
	return func() {}
}

// Rank 0's decision and slot go to all, and to rank 0 whether another process failed to write.
func (s *saving) agreedSave(save bool, at shares.Slot, err error) (_ bool, _ shares.Slot, failed error) {
	if s.job == nil {
		return save && err == nil, at, err
	}
	words := []int64{0, 0, 0, s.lost()}
	if s.job.Rank() == 0 && save && err == nil {
		words = []int64{1, at.Again, at.Token, 0}
	}
	if agreed := agree(s.job, "the step that rank 0 saves", words); agreed != nil {
		return false, at, errors.Join(err, agreed)
	}
	s.hear(words[3])
	return words[0] > 0, shares.Slot{Again: words[1], Token: words[2]}, err
}

func (s *saving) lost() int64 {
	all := s.failures + s.gone
	if s.job.Rank() == 0 || all == s.told {
		return 0
	}
	s.told = all
	return 1
}

func (s *saving) hear(lost int64) {
	if s.job.Rank() == 0 && lost > 0 {
		s.async.lastCall()
	}
}

func (s *saving) written() error {
	if s.job == nil {
		return nil
	}
	words := []int64{s.lost()}
	if err := agree(s.job, "whether all have written their parts", words); err != nil {
		return err
	}
	s.hear(words[0])
	return nil
}

// The state holds the values until Write.
func discard(c Content) error {
	var errs []error
	write := func(write func(io.Writer) error) {
		if write != nil {
			errs = append(errs, shield.Do(func() error { return write(io.Discard) }))
		}
	}
	for _, t := range c.Tensors {
		write(t.Write)
		for _, p := range t.Parts {
			write(p.Write)
		}
	}
	return errors.Join(errs...)
}

func chosen(ctx context.Context, folder *Folder, job loop.Job, find func() (*Checkpoint, error), use func(*Checkpoint) error) error {
	var c *Checkpoint
	var err error
	if job == nil || job.Rank() == 0 {
		c, err = find()
	}
	if job != nil {
		step, none := int64(0), errors.Is(err, ErrNone)
		if none {
			err = nil
		} else if c != nil {
			step = int64(c.Step) + 1
		}
		step, failed, err := decided(job, step, err)
		switch {
		case err != nil:
			return err
		case failed:
			return errors.New("checkpoint: rank 0 could not read the folder; see the error of rank 0 for the reason")
		case step == 0:
			return ErrNone
		}
		if job.Rank() > 0 {
			if c, err = folder.Load(ctx, Step(step-1)); err != nil {
				err = fmt.Errorf("%w (rank 0 continues from this checkpoint: the folder must be the same for all processes)", err)
			}
		}
		if err != nil {
			return together(job, "restore the checkpoint", err)
		}
	}
	if err != nil {
		return err
	}
	return together(job, "restore the checkpoint", use(c))
}

func together(job loop.Job, what string, err error) error {
	if job == nil {
		return err
	}
	words := []int64{0}
	if err != nil {
		words[0] = int64(job.Rank()) + 1
	}
	if agreed := agree(job, "whether all could "+what, words); agreed != nil {
		return errors.Join(err, agreed)
	}
	if err == nil && words[0] > 0 {
		return fmt.Errorf("checkpoint: rank %d could not %s; see the error of that rank for the reason", words[0]-1, what)
	}
	return err
}
