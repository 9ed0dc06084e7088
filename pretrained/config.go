package pretrained

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/internal/regular"
	"github.com/lazo-ml/lazo/nn"
)

const configFile = "config.json"

type config struct {
	fields  map[string]json.RawMessage
	file    string // config.json if empty
	images  map[string]json.RawMessage
	tensors map[string]stored
	chosen
	classes int // of a head
	err     error
}

type chosen struct {
	dtype     dtypes.DType // of the variables
	recompute bool
}

func (c chosen) layer(x *graph.Node, apply func(x *graph.Node) *graph.Node) *graph.Node {
	if !c.recompute {
		return apply(x)
	}
	return apply(x.Checkpoint()).StopCheckpoint()
}

func readConfig(folder, file string, most int64) (*config, error) {
	text, err := regular.Read(filepath.Join(folder, file), most)
	if err != nil {
		return nil, err
	}
	fields, err := object(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &config{file: file, fields: fields}, nil
}

// object reads a JSON object. A struct would take names in any case.
func object(text []byte) (fields map[string]json.RawMessage, err error) {
	if err = strict(text, &fields); err == nil && fields == nil {
		err = errors.New("it is null, expected an object")
	}
	return fields, err
}

// strict is [json.Unmarshal] of objects that have each name once.
func strict(text []byte, to any) error {
	if err := json.Unmarshal(text, to); err != nil {
		return err
	}
	type level struct {
		seen  map[string]bool // nil in a list
		value bool            // comes next
	}
	var open []level
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		t, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if in := len(open) - 1; in >= 0 && open[in].seen != nil && t != json.Delim('}') {
			if open[in].value = !open[in].value; open[in].value {
				name, _ := t.(string)
				if open[in].seen[name] {
					return fmt.Errorf("an object has %s twice", listed.Quoted(name))
				}
				open[in].seen[name] = true
				continue
			}
		}
		switch t {
		case json.Delim('{'):
			open = append(open, level{seen: map[string]bool{}})
		case json.Delim('['):
			open = append(open, level{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
	}
}

// decode makes null a zero.
func (c *config) decode(name string, to any) error {
	for d := json.NewDecoder(bytes.NewReader(c.fields[name])); ; {
		t, err := d.Token()
		switch {
		case err == io.EOF:
			return json.Unmarshal(c.fields[name], to)
		case err != nil:
			return err
		case t == nil:
			return errors.New("it has null")
		}
	}
}

func (c *config) fail(name, format string, values ...any) {
	c.err = collected(c.err, fmt.Errorf("%s: %s is %s, expected %s", cmp.Or(c.file, configFile), name, listed.Quoted(string(c.fields[name])), fmt.Sprintf(format, values...)))
}

type faults struct {
	first []error
	more  int
}

const mostFaults = 10

// collected is [errors.Join] that keeps an input's first errors and counts the others.
func collected(all, err error) error {
	switch f, many := all.(*faults); {
	case err == nil:
		return all
	case all == nil:
		return err
	case !many:
		return &faults{first: []error{all, err}}
	case len(f.first) < mostFaults:
		f.first = append(f.first, err)
	default:
		f.more++
	}
	return all
}

func (f *faults) Unwrap() []error { return f.first }

func (f *faults) Error() string {
	text := errors.Join(f.first...).Error()
	if f.more > 0 {
		text += fmt.Sprintf("\nand %d more", f.more)
	}
	return text
}

func (c *config) has(name string) bool {
	text, there := c.fields[name]
	return there && !bytes.Equal(text, []byte("null"))
}

// mostSize bounds each size. Shapes are compared with the files' before anything is allocated.
const mostSize = 1 << 30

// size reads a whole number from 1 on. standard 0: the field is required.
func (c *config) size(name string, standard int) int {
	if !c.has(name) && standard > 0 {
		return standard
	}
	n, err := strconv.Atoi(string(c.fields[name]))
	if err != nil || n < 1 || n > mostSize {
		c.fail(name, "a whole number from 1 to %d", mostSize)
		return 1
	}
	return n
}

func (c *config) zero(names ...string) {
	for _, name := range names {
		c.only(name, "0.0", "0")
	}
}

func (c *config) counts(name string, most int, standard ...int) []int {
	list := standard
	if c.has(name) && (c.decode(name, &list) != nil || len(list) == 0 || slices.Min(list) < 1 || slices.Max(list) > most) {
		c.fail(name, "a list of whole numbers from 1 to %d", most)
		return standard
	}
	return list
}

func (c *config) pair(name string, standard int) (height, width int) {
	var both []int
	if c.decode(name, &both) != nil || both == nil {
		n := c.size(name, standard)
		return n, n
	}
	if len(both) != 2 || min(both[0], both[1]) < 1 || max(both[0], both[1]) > mostSize {
		c.fail(name, "a whole number from 1 to %d, or two", mostSize)
		return 1, 1
	}
	return both[0], both[1]
}

func (c *config) id(name string, standard, most int) int {
	if text, there := c.fields[name]; !there {
		return standard
	} else if string(text) == "null" {
		return -1
	}
	n, err := strconv.Atoi(string(c.fields[name]))
	if err != nil || n < 0 || n >= most {
		c.fail(name, "a whole number from 0 to %d", most-1)
		return -1
	}
	return n
}

func (c *config) number(name string, standard float64, fits func(x float64) bool, expected string) float64 {
	if !c.has(name) {
		return standard
	}
	x := math.NaN()
	if err := c.decode(name, &x); err != nil || !fits(x) {
		c.fail(name, "%s", expected)
		return standard
	}
	return x
}

func (c *config) rate(name string, standard float64) float64 {
	return c.number(name, standard, func(x float64) bool { return x >= 0 && x < 1 }, "a number from 0 to below 1")
}

func (c *config) positive(name string, standard float64) float64 {
	return c.number(name, standard, func(x float64) bool { return x > 0 && x < math.MaxFloat32 }, "a number above 0")
}

func (c *config) flag(name string, standard bool) bool {
	if !c.has(name) {
		return standard
	}
	value := standard
	if err := c.decode(name, &value); err != nil {
		c.fail(name, "true or false")
	}
	return value
}

func (c *config) text(name, standard string) (value string) {
	if !c.has(name) {
		return standard
	}
	if err := c.decode(name, &value); err != nil {
		c.fail(name, "a text")
	}
	return value
}

func (c *config) texts(name string) (list []string) {
	if c.has(name) && c.decode(name, &list) != nil {
		c.fail(name, "a list of texts")
	}
	return list
}

// only refuses values that would change numbers. null means none.
func (c *config) only(name string, implemented ...string) {
	if !c.has(name) {
		return
	}
	var text bytes.Buffer
	if err := json.Compact(&text, c.fields[name]); err != nil || !slices.Contains(implemented, text.String()) {
		expected := "none: the field is not implemented"
		if len(implemented) > 0 {
			expected = implemented[0] + ": other values are not implemented"
		}
		c.fail(name, "%s", expected)
	}
}

var activations = map[string]nn.Activation{
	"gelu": "gelu", "gelu_python": "gelu", "quick_gelu": "quick_gelu", "gelu_new": "gelu_approx", "gelu_fast": "gelu_approx", "gelu_accurate": "gelu_approx",
	"gelu_pytorch_tanh": "gelu_approx", "gelu_python_tanh": "gelu_approx", "relu": "relu", "silu": "swish", "swish": "swish", "tanh": "tanh", "sigmoid": "sigmoid",
}

func (c *config) activation(name, standard string) nn.Activation {
	a, known := activations[c.text(name, standard)]
	if !known {
		c.fail(name, "one of %q", slices.Sorted(maps.Keys(activations)))
	}
	return a
}

// labels are the names of classes: of id2label, or of a number of classes, default 2.
func (c *config) labels() []string {
	var names map[string]string
	if c.has("id2label") {
		if err := c.decode("id2label", &names); err != nil || len(names) == 0 {
			c.fail("id2label", "an object of names by their classes' numbers")
			return nil
		}
	}
	all := make([]string, len(names))
	for i := range all {
		name, there := names[strconv.Itoa(i)]
		if !there {
			c.fail("id2label", "a name for each class from 0 to %d", len(all)-1)
			return nil
		}
		all[i] = name
	}
	n := c.size("num_labels", cmp.Or(len(all), 2))
	switch {
	case n > mostLabels:
		c.fail("num_labels", "at most %d", mostLabels)
	case names == nil && n > mostStandardLabels:
		c.fail("num_labels", "at most %d without names in id2label", mostStandardLabels)
	case names == nil:
		return standardLabels(n)
	case n != len(all):
		c.fail("num_labels", "%d, the number of names in id2label", len(all))
	}
	return all
}

const (
	mostLabels         = 1 << 24
	mostStandardLabels = 1 << 16 // which nothing else bounds
)

func standardLabels(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = "LABEL_" + strconv.Itoa(i)
	}
	return all
}
