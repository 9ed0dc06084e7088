package tables

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
	"unsafe"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/internal/packed"
)

const (
	csvBuffer     = 4096
	byteOrderMark = "\ufeff"
)

var errUTF16 = errors.New("it begins with the byte order mark of UTF-16: write it as UTF-8")

var errBareCR = errors.New("the file is one line, with bare carriage returns in it (CR): write line ends as LF or CRLF")

type csvFile struct {
	csvSource
	comma   rune
	names   []string
	columns []csvColumn
	width   int64
	missing map[string]bool
	limit   int64
	first   csvText
	ends    [256]bool
	// direct is each cell's field, or -1; nil if rows are split into cells.
	direct []int32

	spareCells sync.Pool
}

func openCSVFile(r io.Reader, format Format, block int) (*csvFile, error) {
	most := cmp.Or(min(format.MaxRow, math.MaxInt-csvBuffer), csvMaxRow)
	comma := cmp.Or(format.Comma, ',')
	if most < 0 || comma == '"' || comma == '\n' || comma == '\r' || comma == 0xFFFD {
		return nil, fmt.Errorf("the format has Comma %q and MaxRow %d: expected a separator that is neither a quote nor a line end, and a length of 0 or more", comma, format.MaxRow)
	}
	u, err := packed.Reader(r)
	if err != nil {
		return nil, err
	}
	text := bufio.NewReader(u)
	mark, _ := text.Peek(len(byteOrderMark))
	switch {
	case string(mark) == byteOrderMark:
		_, _ = text.Discard(len(mark))
	case len(mark) > 1 && (string(mark[:2]) == "\xff\xfe" || string(mark[:2]) == "\xfe\xff"):
		return nil, errUTF16
	}
	f := &csvFile{csvSource: csvSource{Reader: text, block: block, most: most, line: 1}, comma: comma, limit: format.Limit, missing: map[string]bool{"": true}}
	for _, m := range format.Missing {
		f.missing[m] = true
	}
	f.ends['"'], f.ends['\n'] = true, true
	if comma < utf8.RuneSelf {
		f.ends[comma] = true
	}
	if err := f.open(format); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *csvFile) open(format Format) error {
	block, err := f.next()
	for err == nil && onlyEmptyLines(block.text) {
		var more csvText
		if more, err = f.next(); err == nil {
			block.text = append(block.text, more.text...)
			block.tooLong = more.tooLong
		}
	}
	fail := func(line int, err error) error { return &data.RowError{Line: max(line, 1), Err: err} }
	if err == io.EOF {
		return fail(0, errors.New("the file is empty"))
	}
	if err != nil {
		return err
	}
	rows := f.reader(block)
	first, begins, wrong := rows.quotedRow()
	if wrong == io.EOF {
		return fail(0, errors.New("the file is empty"))
	}
	if wrong != nil {
		return rows.wrong(wrong, first, begins, 0)
	}
	if len(first) > csvMaxColumns {
		return fail(0, fmt.Errorf("%d columns, expected at most %d: %w", len(first), csvMaxColumns, data.ErrLimit))
	}
	for i, name := range first {
		if !format.NoHeader && !utf8.ValidString(name) {
			return fail(1, fmt.Errorf("the name of column %d, %s: %w", i+1, quoted(name), errNotUTF8))
		}
		if format.NoHeader {
			name = fmt.Sprint(i + 1)
		}
		if name = strings.TrimSpace(name); name == "" && format.Texts {
			name = fmt.Sprint(i + 1)
		}
		f.names = append(f.names, strings.Clone(name))
	}
	if f.single = len(f.names) == 1; f.single && !block.tooLong {
		block = f.giveBack(block)
	}
	if !format.NoHeader {
		block.text, block.line = block.text[rows.at:], rows.line
		if slices.ContainsFunc(f.names, func(name string) bool { return strings.Contains(name, "\r") }) {
			if onlyEmptyLines(block.text) {
				more, err := f.next()
				switch {
				case err == io.EOF:
					return fail(begins, errBareCR)
				case err != nil:
					return err
				}
				block.text, block.tooLong = append(block.text, more.text...), more.tooLong
			}
		}
	}
	f.first = block
	if format.Texts {
		if len(format.Fields) > 0 {
			return errors.New("the format has both Texts and Fields, expected one of them: a field of texts has the DType \"string\"")
		}
		format.Fields = nil
		for _, name := range f.names {
			format.Fields = append(format.Fields, Field{Name: name, Columns: []string{name}, DType: "string"})
		}
	}
	if f.columns, err = chooseColumns(f.names, format.Fields, f.comma); err != nil {
		return fail(begins, err)
	}
	for k := range f.columns {
		c := &f.columns[k]
		f.width += c.width()
		c.missingLast = true
		trial := c.values.empty(0)
		for text := range f.missing {
			c.missingLast = c.missingLast && trial.add(text) != nil
		}
	}
	f.planDirect()
	return nil
}

func (f *csvFile) blocks() iter.Seq2[csvText, error] { return f.csvSource.blocks(f.first) }

// The error counts from the block's first row.
type csvPart struct {
	block  csvText
	fields []data.Field
	n      int
	bytes  int64
	err    *data.RowError
}

func (f *csvFile) parse(b csvText) (csvPart, error) { return f.readBlock(b, math.MaxInt64), nil }

func (f *csvFile) readBlock(b csvText, limit int64) csvPart {
	r := f.reader(b)
	if cells, _ := f.spareCells.Get().(*[]string); cells != nil {
		r.cells = *cells
	} else {
		r.cells = make([]string, 0, len(f.names))
	}
	defer func() {
		clear(r.cells) // they keep the block alive
		f.spareCells.Put(&r.cells)
	}()
	most := bytes.Count(b.text, []byte{'\n'})
	if !bytes.HasSuffix(b.text, []byte{'\n'}) {
		most++
	}
	most = min(most, len(b.text)/len(f.names)+1)
	for _, c := range f.columns {
		c.values = c.values.empty(min(most*len(c.at), 1<<20))
		r.columns = append(r.columns, c)
		r.floats = append(r.floats, c.floats())
	}
	part := csvPart{block: b}
	for part.err == nil {
		if r.direct != nil && r.directRow(&part, limit) {
			continue
		}
		cells, line, ok, err := r.row(part.n)
		if err != nil {
			part.err = err
			break
		}
		if !ok {
			break
		}
		if f.single {
			for ; r.empty > 0 && part.err == nil; r.empty-- {
				part.err = r.add(&part, []string{""}, r.emptyFrom, limit)
				r.emptyFrom++
			}
		}
		if part.err == nil {
			part.err = r.add(&part, cells, line, limit)
		}
	}
	part.fields = make([]data.Field, len(r.columns))
	for k, c := range r.columns {
		dims := []int{part.n}
		if !c.single {
			dims = append(dims, len(c.at))
		}
		part.fields[k] = data.Named(c.Name, c.values.flat(), dims...)
	}
	return part
}

func (r *csvReader) add(part *csvPart, cells []string, line int, limit int64) *data.RowError {
	part.n++
	texts, column, err := r.take(cells)
	if err == nil {
		if part.bytes += r.width + texts; part.bytes <= limit {
			return nil
		}
		err = fmt.Errorf("the values take more than %d bytes (set Format.Limit, or use Stream): %w", r.limit, data.ErrLimit)
	}
	return &data.RowError{Row: part.n, Line: line, Column: column, Err: err}
}

type csvReader struct {
	*csvFile
	columns []csvColumn
	csvText
	at               int
	cells            []string
	empty, emptyFrom int
	// quoted reads the rows that plainRow refuses, from began on.
	quoted    *csv.Reader
	began     int
	beganLine int
	floats    []*csvSlice[float32]
}

func (f *csvFile) reader(b csvText) *csvReader { return &csvReader{csvFile: f, csvText: b} }

// row's cells are valid until the next call.
func (r *csvReader) row(before int) (cells []string, line int, ok bool, wrong *data.RowError) {
	for r.at < len(r.text) {
		if c := r.text[r.at]; c == '\n' || c == '\r' && r.at+1 < len(r.text) && r.text[r.at+1] == '\n' {
			if r.empty++; r.empty == 1 {
				r.emptyFrom = r.line
			}
			r.at, r.line = r.at+bytes.IndexByte(r.text[r.at:], '\n')+1, r.line+1
			continue
		}
		if r.plainRow() {
			return r.cells, r.line - 1, true, nil
		}
		begins := r.line
		cells, line, err := r.quotedRow()
		if err == io.EOF {
			return nil, 0, false, nil
		}
		if err != nil {
			if r.single {
				before += r.empty
			}
			return nil, 0, false, r.wrong(err, cells, begins, before+1)
		}
		return cells, line, true, nil
	}
	return nil, 0, false, nil
}

func (r *csvReader) plainRow() bool {
	if r.comma >= utf8.RuneSelf {
		return false
	}
	comma, text, from := byte(r.comma), r.text[r.at:], 0
	r.cells = r.cells[:0]
	for i, c := range text {
		if !r.ends[c] {
			continue
		}
		if c == '"' || len(r.cells) == cap(r.cells) {
			return false
		}
		if c == comma {
			r.cells = append(r.cells, unsafe.String(unsafe.SliceData(text[from:]), i-from))
			from = i + 1
			continue
		}
		end := i
		if end > 0 && text[end-1] == '\r' {
			end--
		}
		if i > r.most || len(r.cells) != len(r.names)-1 {
			return false
		}
		r.cells = append(r.cells, unsafe.String(unsafe.SliceData(text[from:]), max(end-from, 0)))
		r.at, r.line = r.at+i+1, r.line+1
		return true
	}
	return false
}

func (r *csvReader) quotedRow() (cells []string, begins int, err error) {
	if r.quoted == nil || int64(r.at) != int64(r.began)+r.quoted.InputOffset() {
		var rest io.Reader = bytes.NewReader(r.text[r.at:])
		if r.tooLong {
			rest = io.MultiReader(rest, errorReader{r.rowTooLong()})
		}
		r.quoted = csv.NewReader(rest)
		r.quoted.Comma, r.quoted.ReuseRecord, r.quoted.FieldsPerRecord = r.comma, true, len(r.names)
		r.began, r.beganLine = r.at, r.line
	}
	cells, err = r.quoted.Read()
	if err != nil {
		return cells, r.line, err
	}
	end := r.began + int(r.quoted.InputOffset())
	row := r.text[r.at:end]
	for len(row) > 0 && (row[0] == '\n' || row[0] == '\r' && len(row) > 1 && row[1] == '\n') {
		row = row[bytes.IndexByte(row, '\n')+1:]
	}
	begins, _ = r.quoted.FieldPos(0)
	begins += r.beganLine - 1
	if len(row) > r.most+2 {
		return cells, begins, r.rowTooLong()
	}
	r.line += bytes.Count(r.text[r.at:end], []byte{'\n'})
	r.at = end
	return cells, begins, nil
}

type errorReader struct{ error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.error }

func (f *csvFile) rowTooLong() error {
	return fmt.Errorf("the row has more than %d bytes (set Format.MaxRow): %w", f.most, data.ErrLimit)
}

func (r *csvReader) wrong(err error, cells []string, line, row int) *data.RowError {
	if parse := (*csv.ParseError)(nil); errors.As(err, &parse) {
		line = parse.StartLine + r.beganLine - 1
		if err = parse.Err; errors.Is(err, csv.ErrFieldCount) {
			err = wrongCells(cells, r.names, r.comma)
		}
	}
	return &data.RowError{Row: row, Line: line, Err: err}
}

func wrongCells(cells, names []string, separator rune) error {
	hint := ""
	if comma := otherComma(strings.Join(names, " ")+strings.Join(cells, " "), separator); comma != "" {
		hint = fmt.Sprintf(": set Format.Comma to %s if that separates the cells", comma)
	} else if len(names) == 1 {
		hint = fmt.Sprintf(": set Format.Comma if another character than %q separates the cells", separator)
	}
	return fmt.Errorf("%d cells, expected %d as in the first row%s", len(cells), len(names), hint)
}

func (r *csvReader) take(cells []string) (texts int64, column string, err error) {
	for k := range r.columns {
		c := &r.columns[k]
		for _, i := range c.at {
			n, err := r.takeCell(c, cells[i])
			if err != nil {
				return 0, r.names[i], err
			}
			texts += n
		}
	}
	return texts, "", nil
}

func (r *csvReader) takeCell(c *csvColumn, cell string) (texts int64, err error) {
	cell = trimmed(cell)
	if c.missingLast && numeric(cell) {
		if err := c.values.add(cell); err == nil {
			return 0, nil
		} else if !r.missing[cell] {
			return 0, r.advised(c, cell, err)
		}
	}
	_, text := c.values.(*csvSlice[string])
	if r.missing[cell] {
		if c.Fill == "" && !text {
			return 0, fmt.Errorf("the cell %q marks a missing value; set Field.Fill to its replacement, or leave the column out", cell)
		}
		cell = c.Fill
	}
	if text {
		texts = int64(len(cell))
	}
	if err := c.values.add(cell); err != nil {
		return 0, r.advised(c, cell, err)
	}
	return texts, nil
}

func (r *csvReader) advised(c *csvColumn, cell string, err error) error {
	if c.Classes != nil {
		return err
	}
	return fmt.Errorf("%w%s", err, advice(cell, r.comma))
}

func trimmed(cell string) string {
	if n := len(cell); n > 0 {
		if first, last := cell[0], cell[n-1]; first > ' ' && first < utf8.RuneSelf && last > ' ' && last < utf8.RuneSelf {
			return cell
		}
	}
	return strings.TrimSpace(cell)
}
