package records

import (
	"fmt"
	"log/slog"
)

// Backlog writes entries to a file in order. It keeps up to Room bytes of those that cannot be written, as while the
// disk is full, and loses the rest. slog's default logger gets a warning.
type Backlog[T any] struct {
	Path string
	// Clone copies an entry and returns its size in bytes.
	Clone func(T) (T, int)

	waiting []waiting[T]
	size    int
	failing bool
	losing  bool
	lost    gap
	err     error
}

const Room = 16 << 20

type waiting[T any] struct {
	step int64
	size int
	of   T
}

type gap struct{ n, from, to int64 }

func (g *gap) add(step int64) {
	if g.n == 0 {
		g.from = step
	}
	g.n, g.to = g.n+1, step
}

// Add writes the waiting entries, then this one. If write fails within an entry, its next call is for the same one.
func (b *Backlog[T]) Add(step int64, of T, write func(T) error) {
	err := b.Retry(write)
	if err == nil {
		if err = write(of); err == nil {
			return
		}
	}
	b.err = err
	if !b.failing {
		b.failing = true
		slog.Warn("callbacks: not written, kept in memory until it can be", "file", b.Path, "step", step, "error", err)
	}
	kept, size := b.Clone(of)
	if len(b.waiting) > 0 && b.size+size > Room {
		if b.lost.add(step); !b.losing {
			b.losing = true
			slog.Warn("callbacks: lost from this step on, until it can be written", "file", b.Path, "step", step,
				"kept", len(b.waiting), "bytes", b.size, "error", err)
		}
		return
	}
	b.size += size
	b.waiting = append(b.waiting, waiting[T]{step, size, kept})
}

func (b *Backlog[T]) Retry(write func(T) error) error {
	written := gap{}
	for len(b.waiting) > 0 {
		first := b.waiting[0]
		if err := write(first.of); err != nil {
			b.err = err
			return err
		}
		written.add(first.step)
		b.waiting, b.size = b.waiting[1:], b.size-first.size
	}
	if b.failing {
		b.waiting, b.failing, b.losing = nil, false, false
		slog.Warn("callbacks: written again", "file", b.Path, "from", written.from, "to", written.to,
			"lost", b.lost.n, "lost_from", b.lost.from, "lost_to", b.lost.to)
	}
	return nil
}

func (b *Backlog[T]) Err() error {
	missing := gap{} // those that wait are older
	for _, w := range b.waiting {
		missing.add(w.step)
	}
	if b.lost.n > 0 {
		n, from := missing.n, missing.from
		missing = gap{n + b.lost.n, b.lost.from, b.lost.to}
		if n > 0 {
			missing.from = min(from, b.lost.from)
		}
	}
	if missing.n == 0 {
		return nil
	}
	return fmt.Errorf("%s: %d records of steps %d to %d are missing: %w", b.Path, missing.n, missing.from, missing.to, b.err)
}
