package main

import (
	"io"
	"log/slog"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
)

// saveEvery is how many steps may be lost by a kill.
const saveEvery = loop.Steps(50)

// flags are those that a resumed run must have in common with the saved one, because the steps depend on them.
type flags struct {
	Data  string
	Batch int
	Rate  float64
	Seed  int64
}

// resuming is the option of -resume.
func (c config) resuming(stderr io.Writer) loop.Option {
	level := slog.LevelInfo
	if c.quiet {
		level = slog.LevelWarn
	}
	return checkpoint.Resume(c.resume, checkpoint.Every(saveEvery), checkpoint.Options{
		Same: flags{c.data, c.batch, c.rate, c.seed},
		Log:  slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level})),
	})
}
