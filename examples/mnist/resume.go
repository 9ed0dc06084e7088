package main

import (
	"io"
	"log/slog"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
)

const saveEvery = loop.Steps(50)

// Steps depend on them: they must not change on resumption.
type flags struct {
	Data  string
	Batch int
	Rate  float64
	Seed  int64
}

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
