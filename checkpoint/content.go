package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/shares"
	"github.com/lazo-ml/lazo/internal/shield"
)

// Content is a checkpoint's content.
type Content struct {
	Tensors []Tensor
	// Metrics select the best checkpoints ([Retention]). NaN and infinities are allowed.
	Metrics map[string]float64
	// Sections are all other values by name, in JSON. Integers stay exact; for other types see [Params].
	Sections map[string]any
	// Share is set if several processes save one state.
	Share shares.Share
}

func (c Content) Sharded() bool {
	return slices.ContainsFunc(c.Tensors, func(t Tensor) bool { return t.Parts != nil })
}

// Tensor is a named array, row-major.
type Tensor struct {
	// Name is UTF-8 text of at most 4 kB.
	Name  string
	DType safetensors.DType
	Dims  []int
	// Data is the elements, row-major, little-endian.
	Data []byte
	// Write, if not nil, replaces Data: it writes exactly the size of Dims and DType. Save calls it once, in its
	// goroutine. Bytes in the AvailableBuffer of a writer like [bytes.Buffer] are not copied.
	Write func(io.Writer) error
	// Parts, if not nil, replace Data and Write: this process's parts of a sharded tensor, possibly none.
	Parts []shares.Part
}

// All but the tensors' bytes is checked.
type draft struct {
	manifest manifest
	tensors  []Tensor
	share    shares.Share
	parts    []Tensor
	of       map[string]partOf
	written  atomic.Bool
	// closed when the other processes write nothing more
	over     chan struct{}
	overOnce sync.Once
}

func (d *draft) all() iter.Seq[*Tensor] {
	return func(yield func(*Tensor) bool) {
		for _, list := range [][]Tensor{d.tensors, d.parts} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

func (d *draft) cut() bool { return len(d.manifest.cuts) > 0 }

func newDraft(step Step, c Content) (*draft, error) {
	d := &draft{share: c.Share, of: map[string]partOf{}, over: make(chan struct{})}
	d.manifest = manifest{
		format: format, step: step,
		metrics:  make(map[string]float, len(c.Metrics)),
		sections: make(map[string]json.RawMessage, len(c.Sections)),
		ranks:    map[string]stateSum{},
		cuts:     map[string]*shardedTensor{},
	}
	if err := d.divide(inOrder(c.Tensors)); err != nil {
		return nil, err
	}
	if step < 0 {
		return nil, fmt.Errorf("step %d is negative", step)
	}
	for name, x := range c.Metrics {
		d.manifest.metrics[name] = float(x)
	}
	for name, value := range c.Sections {
		text, err := encodeSection(value)
		if err != nil {
			return nil, fmt.Errorf("section %q: %w", name, err)
		}
		d.manifest.sections[name] = text
	}
	if err := d.checkNames(); err != nil {
		return nil, err
	}
	return d, d.checkTensors()
}

func encodeSection(value any) (json.RawMessage, error) {
	var text []byte
	err := shield.Do(func() (err error) {
		text, err = json.Marshal(value)
		return err
	})
	if err != nil {
		return nil, err
	}
	return text, checkJSON(text)
}

func (d *draft) checkNames() error {
	for name := range d.manifest.metrics {
		if err := checkName(name); err != nil {
			return fmt.Errorf("metric %w", err)
		}
	}
	for name := range d.manifest.sections {
		if err := checkName(name); err != nil {
			return fmt.Errorf("section %w", err)
		}
	}
	return nil
}

// Checkpoint is a loaded checkpoint, verified.
type Checkpoint struct {
	Info
	// Tensors have Data, except with [Options.LeaveSharded]. They are sorted by dtype, widest first, then by name.
	Tensors []Tensor
	// PassedOver is why [Folder.Newest] skipped newer checkpoints.
	PassedOver []error
	sections   map[string]json.RawMessage
}

// Content returns the content, to save it elsewhere.
func (c *Checkpoint) Content() Content {
	sections := make(map[string]any, len(c.sections))
	for name, text := range c.sections {
		sections[name] = text
	}
	return Content{Tensors: c.Tensors, Metrics: c.Metrics, Sections: sections}
}

// Tensor returns the named tensor, if any.
func (c *Checkpoint) Tensor(name string) (Tensor, bool) {
	i := slices.IndexFunc(c.Tensors, func(t Tensor) bool { return t.Name == name })
	if i < 0 {
		return Tensor{}, false
	}
	return c.Tensors[i], true
}

// Sections returns the sorted names.
func (c *Checkpoint) Sections() []string { return sortedKeys(c.sections) }

// Section decodes a section into the value that into points to. Unknown fields are an error. Numbers in an any are
// json.Number.
func (c *Checkpoint) Section(name string, into any) error {
	text, ok := c.sections[name]
	if !ok {
		return fmt.Errorf("checkpoint: step %d: section %q: %w; it has %q", c.Step, name, ErrNoSection, c.Sections())
	}
	if err := decodeSection(text, into); err != nil {
		return fmt.Errorf("checkpoint: step %d: section %q: %w", c.Step, name, err)
	}
	return nil
}

func decodeSection(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	d.DisallowUnknownFields()
	return shield.Do(func() error { return d.Decode(into) })
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

const nameLimit = 4 << 10

func checkName(name string) error {
	switch {
	case !utf8.ValidString(name):
		return fmt.Errorf("%.100q: the name is not UTF-8", name)
	case len(name) > nameLimit:
		return fmt.Errorf("%.100q…: the name takes %d bytes, over %d: %w", name, len(name), nameLimit, safetensors.ErrLimit)
	}
	return nil
}
