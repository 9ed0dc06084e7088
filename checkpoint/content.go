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

	"github.com/lazo-ml/lazo/internal/shares"
	"github.com/lazo-ml/lazo/internal/shield"
	"github.com/lazo-ml/lazo/safetensors"
)

// Content is what a checkpoint is made of.
type Content struct {
	Tensors []Tensor
	// Metrics are what the best checkpoints are kept by ([Retention]). They are saved to the last bit, NaN and infinities
	// too.
	Metrics map[string]float64
	// Sections are everything else, by name: what encoding/json can write. [Checkpoint.Section] reads them back into the
	// same types. Integers are exact there. [Params] keep the types of values that are not known beforehand, NaN,
	// infinities, and text that is not UTF-8.
	Sections map[string]any
	// Share is for one of several processes that save a state together. The zero Share is all of a state.
	Share shares.Share
}

// Cut reports whether a tensor is sharded over several processes, which then save it together.
func (c Content) Cut() bool {
	return slices.ContainsFunc(c.Tensors, func(t Tensor) bool { return t.Parts != nil })
}

// Tensor is an array with a name.
type Tensor struct {
	// Name is any UTF-8 text, up to 4 kB; it is never a path.
	Name  string
	DType safetensors.DType
	Dims  []int
	// Data are the elements, little endian, the last axis running fastest.
	Data []byte
	// Write, if not nil, writes them in place of Data, so that a state that is not in the host's memory needs no copy
	// there. It is called once, by the goroutine that saves, and must write exactly what Dims and DType take. The writer
	// may be a [bytes.Buffer] or have its AvailableBuffer: bytes that were put there are written without a copy.
	Write func(io.Writer) error
	// Parts, if not nil, stand in place of Data and Write for a tensor that is cut over several processes: those that
	// this one is to save, maybe none. What was loaded is whole.
	Parts []shares.Part
}

// draft is content that can be written: all that can go wrong with it but the tensors' bytes has been tried.
type draft struct {
	manifest manifest
	tensors  []Tensor // whole
	share    shares.Share
	parts    []Tensor // those of this process, named by partName
	of       map[string]partOf
	written  atomic.Bool // all tensors are, by all processes
	// over is closed when the other processes write no more: what is not there then will not come.
	over     chan struct{}
	overOnce sync.Once
}

// all are the tensors that this process writes.
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

// cut tells whether several processes save it.
func (d *draft) cut() bool { return len(d.manifest.cuts) > 0 }

func newDraft(step Step, c Content) (*draft, error) {
	d := &draft{share: c.Share, of: map[string]partOf{}, over: make(chan struct{})}
	d.manifest = manifest{
		format: format, step: step,
		metrics:  make(map[string]float, len(c.Metrics)),
		sections: make(map[string]json.RawMessage, len(c.Sections)),
		ranks:    map[string]stateSum{},
		cuts:     map[string]*cutTensor{},
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

// Checkpoint is one that was loaded, all its checksums right.
type Checkpoint struct {
	Info
	// Tensors have Data (but see [Options.LeaveCut]); they come in the order of the file, the widest types first, then by
	// name.
	Tensors []Tensor
	// PassedOver are newer ones that [Folder.Newest] could not load, and why.
	PassedOver []error
	sections   map[string]json.RawMessage
}

// Content is what the checkpoint is made of, to be saved in another folder.
func (c *Checkpoint) Content() Content {
	sections := make(map[string]any, len(c.sections))
	for name, text := range c.sections {
		sections[name] = text
	}
	return Content{Tensors: c.Tensors, Metrics: c.Metrics, Sections: sections}
}

// Tensor gives the tensor of a name.
func (c *Checkpoint) Tensor(name string) (Tensor, bool) {
	i := slices.IndexFunc(c.Tensors, func(t Tensor) bool { return t.Name == name })
	if i < 0 {
		return Tensor{}, false
	}
	return c.Tensors[i], true
}

// Sections are the names of the sections, sorted.
func (c *Checkpoint) Sections() []string { return sortedKeys(c.sections) }

// Section reads a section into what a pointer points to, strictly: a field that it does not have is an error, since a
// state that is not understood is a state that is lost. Numbers read into an any become json.Number, which holds all
// their digits.
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
