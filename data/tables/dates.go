package tables

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/data"
)

// Dates converts columns of texts with dates to numbers in a float32 field [n, …]: for each column its Parts, in
// order.
type Dates struct {
	// Columns are names, at least one.
	Columns []string
	// Field is the field's name, "x" if "".
	Field string
	// Layout is that of package time. Empty means ISO 8601: "2006-01-02", maybe with a time ("T15:04:05.000", a space
	// for T) and an offset ("+01:00", "Z").
	Layout string
	// Parts are as in pandas, by the text's own clock: "year", "quarter", "month", "day", "day_of_week" (Monday is 0),
	// "day_of_year", "hour", "minute" and "second"; "days" since the date Since. "month cycle" is two columns, sine and
	// cosine of 2π month/12; so are the others, with 4, 31, 7, 366, 24 and 60, but year and days.
	Parts []string
	// Since is a date in Layout, "1970-01-01" if "". Unscaled days that lose 30 seconds in a float32 are an error.
	Since string
	// Fill replaces missing dates: FillMostFrequent, or FillValue with Value, a date in Layout.
	Fill  Fill
	Value string
	// Scale scales parts that are not cycles, by Standard, MinMax or Robust.
	Scale Scale
}

const asDate = "date"

type datePartOf struct {
	name   string
	period float64
	of     func(t time.Time) int
}

var parts = []datePartOf{
	{"year", 0, time.Time.Year},
	{"quarter", 4, func(t time.Time) int { return (int(t.Month()) + 2) / 3 }},
	{"month", 12, func(t time.Time) int { return int(t.Month()) }},
	{"day", 31, time.Time.Day},
	{"day_of_week", 7, func(t time.Time) int { return (int(t.Weekday()) + 6) % 7 }},
	{"day_of_year", 366, time.Time.YearDay},
	{"hour", 24, time.Time.Hour},
	{"minute", 60, time.Time.Minute},
	{"second", 60, time.Time.Second},
}

const (
	days  = "days"
	cycle = " cycle"
)

func checkPart(part string) error {
	var known []string
	for _, p := range parts {
		known = append(known, p.name)
		if p.period > 0 {
			known = append(known, p.name+cycle)
		}
	}
	if known = append(known, days); !slices.Contains(known, part) {
		return fmt.Errorf("the part %q: expected one of %q", part, known)
	}
	return nil
}

func (d Dates) rule() ([]string, string, error) {
	switch {
	case len(d.Columns) == 0 || len(d.Parts) == 0:
		return nil, "", fmt.Errorf("the Columns are %q and the Parts %q, expected at least one of each", d.Columns, d.Parts)
	case d.Fill != noFill && d.Fill != FillMostFrequent && d.Fill != FillValue || (d.Value != "") != (d.Fill == FillValue):
		return nil, "", fmt.Errorf("the Fill is %d and the Value %q: expected 0, FillMostFrequent, or FillValue with a Value", d.Fill, d.Value)
	case d.Scale < noScale || d.Scale > Robust:
		return nil, "", fmt.Errorf("the Scale is %d, expected Standard, MinMax, Robust or none", d.Scale)
	}
	return d.Columns, cmp.Or(d.Field, "x"), nil
}

func (d Dates) fit(names []string, columns []data.Array) ([]prepared, error) {
	return eachColumn(names, columns, d.fitColumn)
}

func (d Dates) fitColumn(name string, column data.Array) (prepared, error) {
	c := &date{source: source{Column: name, Field: cmp.Or(d.Field, "x"), As: asDate}, Layout: d.Layout, Since: d.Since, Fill: d.Value}
	texts, err := textsOf(column)
	if err != nil {
		return nil, err
	}
	if d.Fill == FillMostFrequent {
		there := slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == "" })
		if slices.Sort(there); len(there) == 0 {
			return nil, errors.New("all dates are missing, so none can be filled in: leave the column out, or use FillValue")
		}
		c.Fill = mostFrequent(there)
	}
	for _, part := range d.Parts {
		c.Parts = append(c.Parts, datePart{Part: part, linear: linear{Scale: 1}})
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	times, err := c.times(texts)
	if err != nil {
		return nil, err
	}
	for i := range c.Parts {
		if p := &c.Parts[i]; p.width() == 1 {
			values := make([]float64, len(times))
			for n, t := range times {
				values[n], _ = c.value(p.Part, t)
			}
			if p.linear, err = fitLinear(values, d.Scale); err != nil {
				return nil, err
			}
			if err := lost(values); p.Part == days && d.Scale == noScale && err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// lost: a float32 of days since 1970 has steps of up to 169 seconds.
func lost(values []float64) error {
	for i, v := range values {
		if off := math.Abs(float64(float32(v)) - v); off*24*60*60 > 30 {
			return rowError(i, "a float32 of %v days loses %.0f seconds of the time: set Dates.Since to a date near these, or a Dates.Scale", v, off*24*60*60)
		}
	}
	return nil
}

type date struct {
	source
	Layout string     `json:"layout,omitempty"`
	Since  string     `json:"since,omitempty"`
	Fill   string     `json:"fill,omitempty"`
	Parts  []datePart `json:"parts"`
	since  time.Time
}

type datePart struct {
	Part string `json:"part"`
	linear
}

func (p datePart) width() int {
	if strings.HasSuffix(p.Part, cycle) {
		return 2
	}
	return 1
}

func (c *date) width() (width int) {
	for _, p := range c.Parts {
		width += p.width()
	}
	return width
}

func (c *date) names() (names []string) {
	for _, p := range c.Parts {
		if of, cyclic := strings.CutSuffix(p.Part, cycle); cyclic {
			names = append(names, c.Column+" "+of+" sin", c.Column+" "+of+" cos")
		} else {
			names = append(names, c.Column+" "+p.Part)
		}
	}
	return names
}

func (c *date) check() error {
	if len(c.Parts) == 0 {
		return errors.New("no part of the date: expected at least one")
	}
	for i, p := range c.Parts {
		if err := cmp.Or(checkPart(p.Part), p.linear.check()); err != nil {
			return err
		}
		if slices.ContainsFunc(c.Parts[:i], func(q datePart) bool { return q.Part == p.Part }) {
			return fmt.Errorf("the part %q is listed twice", p.Part)
		}
	}
	c.since = time.Unix(0, 0)
	for what, text := range map[string]string{"Since": c.Since, "value to fill in": c.Fill} {
		t, err := c.time(text)
		if text != "" && err != nil {
			return fmt.Errorf("the %s: %w", what, err)
		}
		if text != "" && what == "Since" {
			c.since = t
		}
	}
	return nil
}

func (c *date) times(texts []string) ([]time.Time, error) {
	times := make([]time.Time, len(texts))
	for i, text := range texts {
		if text = cmp.Or(text, c.Fill); text == "" {
			return nil, rowError(i, "the date is missing: set Dates.Fill, or leave such examples out (Set.Where)")
		}
		var err error
		if times[i], err = c.time(text); err != nil {
			return nil, rowError(i, "%w", err)
		}
	}
	return times, nil
}

var isoLayouts = []string{time.DateOnly, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04Z07:00"}

func (c *date) time(text string) (time.Time, error) {
	layouts, iso := []string{c.Layout}, text
	expected := fmt.Sprintf("the Layout %q", c.Layout)
	if c.Layout == "" {
		layouts, expected = isoLayouts, `"2006-01-02", maybe with a time such as "T15:04:05" and an offset, or another Dates.Layout`
		if len(text) > len(time.DateOnly) && text[len(time.DateOnly)] == ' ' {
			iso = text[:len(time.DateOnly)] + "T" + text[len(time.DateOnly)+1:]
		}
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, iso); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is not a date: expected %s; if it marks a missing one, name it in tables.Missing", quoted(text), expected)
}

// value is a part, and the period of its cycle.
func (c *date) value(part string, t time.Time) (v, period float64) {
	if part == days {
		d := t.Unix() - c.since.Unix()
		return (float64(d) + float64(t.Nanosecond()-c.since.Nanosecond())/1e9) / (24 * 60 * 60), 0
	}
	of := strings.TrimSuffix(part, cycle)
	k := slices.IndexFunc(parts, func(p datePartOf) bool { return p.name == of })
	return float64(parts[k].of(t)), parts[k].period
}

func (c *date) convert(columns []data.Array, to cells) error {
	texts, err := textsOf(columns[0])
	if err != nil {
		return err
	}
	times, err := c.times(texts)
	if err != nil {
		return err
	}
	for i, t := range times {
		at := 0
		for _, p := range c.Parts {
			v, period := c.value(p.Part, t)
			if p.width() == 2 {
				sin, cos := math.Sincos(2 * math.Pi * v / period)
				to.numbers[i*to.stride+at], to.numbers[i*to.stride+at+1] = float32(sin), float32(cos)
			} else if err := to.put(i, at, p.scaled(v), v); err != nil {
				return err
			}
			at += p.width()
		}
	}
	return nil
}
