package tables

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/data"
)

// Hashed converts columns of any texts to one of Buckets classes, without training data: the 64-bit FNV-1a hash of
// the UTF-8 text modulo Buckets. A missing value is "".
type Hashed struct {
	// Columns are names, at least one.
	Columns []string
	// Field and Integers are as in [Categories].
	Field    string
	Integers bool
	Buckets  int
	// Counts makes a column for each bucket: the number of Columns whose "column=text" falls into it.
	Counts bool
}

// Crossed converts the values of several columns together to one class, like "Dream x f". A missing value is a value.
// Other items may name the columns, too.
type Crossed struct {
	// Columns are names, at least two.
	Columns []string
	// Field, Integers and Unknown are as in [Categories].
	Field    string
	Integers bool
	Unknown  Unknown
	// Buckets hashes the classes, as in [Hashed], if not 0.
	Buckets int
}

const asHashed = "hashed"

func checkBuckets(buckets int, integers bool) error {
	if most := 1<<31 - 1; buckets < 1 || buckets > most || !integers && buckets > mostWide {
		return fmt.Errorf("the Buckets are %d, expected 1 to %d, or %d with Integers", buckets, mostWide, most)
	}
	return nil
}

func (h Hashed) rule() ([]string, string, error) {
	switch {
	case len(h.Columns) == 0:
		return nil, "", errors.New("there are no Columns, expected their names")
	case h.Counts && h.Integers:
		return nil, "", errors.New("both Counts and Integers are set: expected one of them")
	}
	return h.Columns, cmp.Or(h.Field, "x"), checkBuckets(h.Buckets, h.Integers)
}

func (h Hashed) fit(names []string, columns []data.Array) ([]prepared, error) {
	if h.Counts {
		of := source{Columns: slices.Clone(names), Field: cmp.Or(h.Field, "x"), As: asHashed, Texts: textColumns(names, columns)}
		return []prepared{&hashed{of, h.Buckets, countsOf}}, nil
	}
	return eachColumn(names, columns, func(name string, column data.Array) (prepared, error) {
		_, err := textsOf(column)
		return newHashed(source{Column: name, Field: h.Field, Texts: textColumns([]string{name}, []data.Array{column})}, h.Buckets, h.Integers), err
	})
}

func (c Crossed) rule() ([]string, string, error) {
	switch {
	case len(c.Columns) < 2:
		return nil, "", fmt.Errorf("the Columns are %q, expected at least two", c.Columns)
	case c.Buckets == 0:
		_, _, err := Categories{Integers: c.Integers, Unknown: c.Unknown}.rule()
		return c.Columns, cmp.Or(c.Field, "x"), err
	case c.Unknown != unknownRefused:
		return nil, "", errors.New("both Buckets, which take each class, and Unknown are set: expected one of them")
	}
	return c.Columns, cmp.Or(c.Field, "x"), checkBuckets(c.Buckets, c.Integers)
}

func (c Crossed) fit(names []string, columns []data.Array) ([]prepared, error) {
	texts, err := crossed(columns)
	if err != nil {
		return nil, fmt.Errorf("columns %q: %w", names, err)
	}
	of := source{Columns: slices.Clone(names), Field: c.Field, Texts: textColumns(names, columns)}
	if c.Buckets > 0 {
		return []prepared{newHashed(of, c.Buckets, c.Integers)}, nil
	}
	one := Categories{Columns: names, Field: c.Field, Integers: c.Integers, Unknown: c.Unknown}
	fitted, err := one.fitColumn(of.title(), data.Array{Flat: texts, Dims: []int{len(texts)}})
	if err != nil {
		return nil, fmt.Errorf("columns %q: %w", names, err)
	}
	fitted.of().Column, fitted.of().Columns, fitted.of().Texts = "", of.Columns, of.Texts
	return []prepared{fitted}, nil
}

// crossed joins each row's texts. Quotes make the joined texts of different rows different.
func crossed(columns []data.Array) ([]string, error) {
	if len(columns) == 1 {
		return textsOf(columns[0])
	}
	joined := make([]string, columns[0].Size())
	for k, column := range columns {
		texts, err := textsOf(column)
		if err != nil {
			return nil, err
		}
		for i, text := range texts {
			if text == "" || strings.Contains(text, " x ") || strings.Contains(text, `"`) {
				text = strconv.Quote(text)
			}
			if k > 0 {
				text = joined[i] + " x " + text
			}
			joined[i] = text
		}
	}
	return joined, nil
}

type hashed struct {
	source
	Buckets int `json:"buckets"`
	// Output is "" for columns of 0 and 1.
	Output string `json:"output,omitempty"`
}

const (
	countsOf   = "counts"
	integersOf = "integers"
)

func newHashed(of source, buckets int, integers bool) *hashed {
	h := &hashed{of, buckets, ""}
	h.As = asHashed
	if integers {
		h.Field, h.Output = cmp.Or(of.Field, of.title()), integersOf
	} else {
		h.Field = cmp.Or(of.Field, "x")
	}
	return h
}

func (h *hashed) integers() bool { return h.Output == integersOf }
func (h *hashed) shares() bool   { return len(h.Columns) > 0 && h.Output != countsOf }

func (h *hashed) width() int {
	if h.integers() {
		return 1
	}
	return h.Buckets
}

func (h *hashed) names() []string {
	if h.integers() {
		return []string{h.title()}
	}
	names := make([]string, h.Buckets)
	for i := range names {
		names[i] = h.title() + "=" + strconv.Itoa(i)
	}
	return names
}

func (h *hashed) check() error {
	if h.Output != "" && h.Output != countsOf && h.Output != integersOf {
		return fmt.Errorf("its output is %q, expected %q, %q or none", h.Output, countsOf, integersOf)
	}
	return checkBuckets(h.Buckets, h.integers())
}

func (h *hashed) convert(columns []data.Array, to cells) error {
	if err := h.onTexts(columns); err != nil {
		return err
	}
	if h.Output != countsOf {
		texts, err := crossed(columns)
		for i, text := range texts {
			to.class(i, h.bucket(text))
		}
		return err
	}
	for k, column := range columns {
		texts, err := textsOf(column)
		if err != nil {
			return err
		}
		for i, text := range texts {
			to.numbers[i*to.stride+int(h.bucket(h.taken()[k]+"="+text))]++
		}
	}
	return nil
}

func (h *hashed) bucket(text string) int32 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text))
	return int32(sum.Sum64() % uint64(h.Buckets))
}
