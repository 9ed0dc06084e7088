package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
)

// saveEvery is how many steps may be lost by a kill.
const saveEvery = loop.Steps(50)

// flags are those that a run must be resumed with, because the steps depend on them.
type flags struct {
	Data  string
	Batch int
	Rate  float64
	Seed  int64
}

// open opens the folder of -resume, puts what is there into the state, and gives the options that save into it.
func (c config) open(ctx context.Context, state *managed.State, stderr io.Writer) (*checkpoint.Folder, checkpoint.Start, []loop.Option, error) {
	mine := flags{c.data, c.batch, c.rate, c.seed}
	folder, err := checkpoint.Open(c.resume, checkpoint.Options{Keep: []checkpoint.Retention{checkpoint.Last(2)}})
	if err != nil {
		return nil, checkpoint.Start{}, nil, err
	}
	start, err := checkpoint.Resume(ctx, folder, state)
	if err == nil && start.Found {
		var saved flags
		if err = start.Section("flags", &saved); err == nil && saved != mine {
			err = fmt.Errorf("-resume %s: that run has %+v, this one %+v: give the same flags, or another folder", c.resume, saved, mine)
		}
		if !c.quiet {
			fmt.Fprintf(stderr, "going on after step %d\n", start.Elapsed.Steps)
		}
	}
	if err != nil {
		return nil, checkpoint.Start{}, nil, errors.Join(err, folder.Close())
	}
	also := checkpoint.Also("flags", func() (any, error) { return mine, nil })
	return folder, start, []loop.Option{start.Option(), checkpoint.Save(folder, loop.Every(saveEvery), also)}, nil
}
