package loop

import "fmt"

// record is a row as a file has it: the logged numbers by the full names of their columns.
type record struct {
	row
	columns []string
	numbers []float64
}

// unknownBatch is the batch of a record whose writer did not know it. A reader then takes the examples since the row
// before.
const unknownBatch = -1

func (r *record) reset(of row) {
	r.row, r.columns, r.numbers = of, r.columns[:0], r.numbers[:0]
}

// add takes up an entry; what is no number is left out.
func (r *record) add(column string, v Value) error {
	number, err := v.Float()
	if err != nil {
		if _, ok := v.(Payload); ok {
			return nil
		}
		return fmt.Errorf("step %d: %s: %w", r.elapsed.Steps, column, err)
	}
	r.columns, r.numbers = append(r.columns, column), append(r.numbers, number)
	return nil
}

// records gives all rows as records; do must not keep them.
func (h *History) records(do func(*record) error) error {
	columns := make([]string, len(h.columns))
	for i, c := range h.columns {
		var err error
		if columns[i], err = columnName(c.place); err != nil {
			return err
		}
	}
	all := h.cursors()
	var rec record
	for r := range h.rows.all {
		rec.reset(*r)
		for i := range all {
			if c := &all[i]; c.seek(r.number) {
				if err := rec.add(columns[i], c.column.value(c.at)); err != nil {
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

// commitRecord adds a record that was read.
func (h *History) commitRecord(r *record) error {
	if r.batch == unknownBatch {
		r.batch = r.elapsed.Samples
		if n := h.rows.n; n > 0 {
			r.batch -= h.rows.at(n - 1).elapsed.Samples
		}
	}
	least := int64(0) // a resumed run may log its start beside the old run's end
	if n := h.rows.n; n > 0 {
		least = h.rows.at(n - 1).elapsed.Steps
	}
	if r.elapsed.Steps < least {
		return fmt.Errorf("%s is %d, expected %d or more, as rows rise: is a run twice in the file?", stepsField, r.elapsed.Steps, least)
	}
	entries := make([]Entry, len(r.columns))
	for i, column := range r.columns {
		p, err := parseColumn(column)
		if err != nil {
			return err
		}
		entries[i] = Entry{p.collection, p.name, Number(r.numbers[i])}
	}
	h.Commit(r.elapsed, NewLogs(entries), r.batch)
	return nil
}

// set reads a field or a number from its text.
func (r *record) set(column, text string) error {
	if f := fieldOf(column); f != nil {
		return f.parse(&r.row, text)
	}
	v, err := parseNumber(text)
	if err != nil {
		return err
	}
	r.columns, r.numbers = append(r.columns, column), append(r.numbers, v)
	return nil
}
