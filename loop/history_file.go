package loop

import (
	"fmt"
	"io"

	"github.com/lazo-ml/lazo/internal/records"
)

// WriteJSON writes all rows as an array of flat objects, one per line: {"elapsed.steps":1,…,"losses.loss":0.5}. Numbers
// keep every bit; NaN and the infinities are the strings "NaN", "Infinity", "-Infinity". Other values are omitted.
// Names that are not UTF-8 or have control characters are errors.
func (h *History) WriteJSON(w io.Writer) error { return written(records.WriteJSON(w, h.records)) }

// WriteCSV writes a line of column names (elapsed, then collection.name) and all rows. A missing entry is an empty
// cell. Values and names are as in [History.WriteJSON].
func (h *History) WriteCSV(w io.Writer) error { return written(records.WriteCSV(w, h.records)) }

// ReadJSON adds the rows of an array of [History.WriteJSON], or of consecutive objects, as in a file of
// callbacks.JSONL. Steps, samples and time are 0 to 2^62. An error names its place; the rows before it (of a truncated
// file all but the last) are added.
func (h *History) ReadJSON(r io.Reader) error { return read(records.ReadJSON(r, h.add)) }

// ReadCSV adds the rows of a table of [History.WriteCSV] or callbacks.CSV, as [History.ReadJSON] does. Only
// elapsed.steps is required.
func (h *History) ReadCSV(r io.Reader) error { return read(records.ReadCSV(r, h.add)) }

func written(err error) error {
	if err != nil {
		return fmt.Errorf("loop: write history: %w", err)
	}
	return nil
}

func read(err error) error {
	if err != nil {
		return fmt.Errorf("loop: read history: %w", err)
	}
	return nil
}

func (h *History) records(do func(*records.Row) error) error {
	columns := make([]string, len(h.columns))
	for i, c := range h.columns {
		var err error
		if columns[i], err = records.Column(string(c.collection), c.name); err != nil {
			return err
		}
	}
	all := h.cursors()
	var rec records.Row
	place := h.skipped
	for r := range h.rows.All {
		rec.Reset(r.times())
		if place++; r.number != place {
			rec.Row = r.number
		}
		for i := range all {
			if c := &all[i]; c.seek(r.number) {
				if err := rec.Add(columns[i], c.column.Value(c.at)); err != nil {
					return err
				}
			}
		}
		if err := do(&rec); err != nil {
			return err
		}
	}
	return nil
}

func (r *row) times() records.Elapsed {
	e := r.elapsed
	return records.Elapsed{Steps: e.Steps, Samples: e.Samples, Epochs: e.Epochs, Batch: r.batch, Time: e.Time, Date: int64(e.Date)}
}

func (h *History) add(r *records.Row) error {
	if err := r.Check(); err != nil {
		return err
	}
	var last Elapsed
	if n := h.rows.Len(); n > 0 {
		last = h.rows.At(n - 1).elapsed
	}
	if r.Batch == records.UnknownBatch {
		if r.Samples < last.Samples { // the batch's weight would be negative
			return fmt.Errorf("elapsed.samples is %d, expected %d or more, as rows rise, or elapsed.batch", r.Samples, last.Samples)
		}
		r.Batch = r.Samples - last.Samples
	}
	if r.Row > 0 {
		if r.Row <= h.number {
			return fmt.Errorf("elapsed.row is %d, expected %d or more, as rows rise", r.Row, h.number+1)
		}
		h.number = r.Row - 1
	}
	if r.Steps < last.Steps { // start of a resumed run
		return fmt.Errorf("elapsed.steps is %d, expected %d or more, as rows rise: is a run twice in the file?", r.Steps, last.Steps)
	}
	entries := make([]Entry, len(r.Columns))
	for i, column := range r.Columns {
		collection, name, err := records.SplitColumn(column)
		if err != nil {
			return err
		}
		entries[i] = Entry{Collection(collection), name, number(r.Numbers[i])}
	}
	h.Commit(Elapsed{Steps: r.Steps, Samples: r.Samples, Epochs: r.Epochs, Time: r.Time, Date: Date(r.Date)}, Logs{entries: entries}, r.Batch)
	return nil
}
