package tables

import (
	"slices"
	"unicode/utf8"
	"unsafe"
)

// Rows are parsed without cells if there are several columns, and each field's are in the file's order.
func (f *csvFile) planDirect() {
	if f.single || f.comma >= utf8.RuneSelf || numeric(string(f.comma)) {
		return
	}
	direct, numbers := slices.Repeat([]int32{-1}, len(f.names)), 0
	for k, c := range f.columns {
		if !slices.IsSorted(c.at) {
			return
		}
		for _, i := range c.at {
			if direct[i] >= 0 {
				return
			}
			direct[i] = int32(k)
		}
		if c.floats() != nil {
			numbers += len(c.at)
		}
	}
	if 2*numbers >= len(direct) {
		f.direct = direct
	}
}

func (c *csvColumn) floats() *csvSlice[float32] {
	if !c.missingLast {
		return nil
	}
	values, _ := c.values.(*csvSlice[float32])
	return values
}

// directRow takes rows without quotes, else changes nothing.
func (r *csvReader) directRow(part *csvPart, limit int64) bool {
	text, comma := r.text[r.at:], byte(r.comma)
	at, last := 0, len(r.direct)-1
	bytes := part.bytes + r.width
	for i, k := range r.direct {
		ok, from := false, at
		var floats *csvSlice[float32]
		if k >= 0 {
			floats = r.floats[k]
		}
		if floats != nil {
			var v float32
			if v, at, ok = directNumber(text, at); ok {
				floats.values = append(floats.values, v)
			}
		} else {
			for at < len(text) && !r.ends[text[at]] {
				at++
			}
			end := at
			if i == last && end > from && end < len(text) && text[end-1] == '\r' {
				end--
			}
			if ok = at < len(text) && text[at] != '"'; ok && k >= 0 {
				texts, err := r.takeCell(&r.columns[k], unsafe.String(unsafe.SliceData(text[from:]), end-from))
				bytes, ok = bytes+texts, err == nil
			}
		}
		if i == last && ok && floats != nil && at+1 < len(text) && text[at] == '\r' && text[at+1] == '\n' {
			at++
		}
		if !ok || at >= len(text) || i < last && text[at] != comma || i == last && (text[at] != '\n' || at > r.most || bytes > limit) {
			for k := range r.columns {
				r.columns[k].values.cut(part.n * len(r.columns[k].at))
			}
			return false
		}
		at++
	}
	part.n++
	part.bytes = bytes
	r.at, r.line = r.at+at, r.line+1
	return true
}

func directNumber(text []byte, at int) (v float32, end int, ok bool) {
	negative := false
	if at < len(text) && (text[at] == '-' || text[at] == '+') {
		negative = text[at] == '-'
		at++
	}
	from, number, point := at, uint64(0), -1
	for ; at < len(text); at++ {
		if digit := text[at] - '0'; digit <= 9 {
			number = 10*number + uint64(digit)
			continue
		}
		if text[at] != '.' || point >= 0 {
			break
		}
		point = at
	}
	length := at - from
	if length == 0 || length > 17 || length == 1 && point >= 0 || number > 1<<53 {
		return 0, at, false
	}
	exact := float64(number)
	if point >= 0 {
		exact /= powersOfTen[at-point-1]
	}
	if negative {
		exact = -exact
	}
	return float32(exact), at, once(exact)
}
