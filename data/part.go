package data

import (
	"errors"
	"fmt"
	"iter"
)

// Part describes one process's part of a larger batch of Of·r rows: Rank·r to (Rank+1)·r-1. The zero Part is a whole
// batch.
type Part struct {
	// Rank is from 0 to Of-1.
	Rank, Of int
	// Samples is the number of the whole batch's examples.
	Samples int
}

// Partial reports whether the batch has a [Part].
func (b Batch) Partial() bool { return b.Part.Of > 0 }

// Share yields only rank's part of each batch, 0 <= rank < of. The parts have the whole batches' positions, Deal and
// [Batch.Samples]; At and Size are their own. Of must divide each batch.
func Share(rank, of int) Option {
	return option(func(d *dealing) { d.rank, d.of, d.shared = rank, of, true })
}

// ShareOf is [Share] for each whole batch of source. A part, and a batch that of does not divide, are errors.
func ShareOf(source iter.Seq2[Batch, error], rank, of int) iter.Seq2[Batch, error] {
	if err := checkShare(rank, of); err != nil {
		return failed[Batch](fmt.Errorf("data: %w", err))
	}
	if source == nil {
		return failed[Batch](fmt.Errorf("data: share: %w", errNoSource))
	}
	return func(yield func(Batch, error) bool) {
		n := 0
		for b, err := range source {
			if err == nil {
				n++
				if b, err = b.share(rank, of); err != nil {
					err = fmt.Errorf("data: batch %d: share %d of %d: %w", n, rank, of, err)
				}
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

func checkShare(rank, of int) error {
	if of < 1 || rank < 0 || rank >= of {
		return fmt.Errorf("share %d of %d: expected at least 1 process, and a rank from 0 to the number of processes minus 1", rank, of)
	}
	return nil
}

func (b Batch) share(rank, of int) (Batch, error) {
	if of == 1 {
		return b, nil
	}
	if b.Partial() {
		return Batch{}, fmt.Errorf("the batch is part %d of %d already: share it once", b.Part.Rank, b.Part.Of)
	}
	rows, err := b.divisible()
	switch {
	case err != nil:
		return Batch{}, err
	case rows < of || rows%of != 0:
		return Batch{}, errUneven(rows, of)
	}
	each, samples := rows/of, b.Samples()
	if _, masked := b.mask(); samples < rows && !masked {
		return Batch{}, errors.New("the batch has more rows than examples and no mask: pad it by data.Pad, or share it before it is padded")
	}
	part := b.slice(rank*each, (rank+1)*each, rows)
	part.Part = Part{rank, of, samples}
	return part, nil
}

func errUneven(rows, of int) error {
	return fmt.Errorf("%d rows cannot be divided evenly among %d processes: use a batch size that is a multiple of %[2]d, and drop or pad the remainder of an epoch", rows, of)
}
