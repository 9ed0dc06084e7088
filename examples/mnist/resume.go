package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/runs"
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
func (c config) open(ctx context.Context, state *managed.State, stderr io.Writer) (*checkpoint.Folder, runs.Start, []loop.Option, error) {
	mine := flags{c.data, c.batch, c.rate, c.seed}
	log := slog.LevelInfo
	if c.quiet {
		log = slog.LevelWarn
	}
	folder, err := runs.Open(c.resume, checkpoint.Options{Keep: []checkpoint.Retention{checkpoint.Last(2)},
		Log: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: log}))}, state.Job())
	if err != nil {
		return nil, runs.Start{}, nil, err
	}
	start, err := runs.Resume(ctx, folder, state)
	if err == nil {
		err = start.Same("flags", mine)
	}
	if err == nil && start.Found && !c.quiet {
		fmt.Fprintf(stderr, "going on after step %d\n", start.Elapsed.Steps)
	}
	if err != nil {
		return nil, runs.Start{}, nil, errors.Join(err, folder.Close())
	}
	also := runs.Also("flags", func() (any, error) { return mine, nil })
	return folder, start, []loop.Option{start.Option(), runs.Save(folder, loop.Every(saveEvery), also)}, nil
}
