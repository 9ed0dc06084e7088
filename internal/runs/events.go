package runs

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data/files"
)

type events struct {
	part
	value       func(path string, step int64, x float64)
	settings    map[string]string
	status      checkpoint.RunStatus
	first, last float64 // seconds since 1970
}

// logged adds the hyperparameters and the status, unless known, and returns the wanted values.
func (r *Run) logged(dir string, wanted bool) (part, error) {
	e := newEvents()
	err := e.folder(dir, "")
	if err != nil {
		return part{}, err
	}
	if wanted {
		inner, err := os.ReadDir(dir)
		if err != nil {
			return part{}, err
		}
		for _, sub := range inner {
			if sub.IsDir() {
				if err := e.folder(filepath.Join(dir, sub.Name()), sub.Name()); err != nil {
					return part{}, err
				}
			}
		}
		if e.at.Time = 0; e.last > e.first {
			e.at.Time = time.Duration((e.last - e.first) * float64(time.Second))
		}
	}
	if len(r.Settings) == 0 {
		r.Settings = e.settings
	}
	if r.Status == "" {
		r.Status = e.status
	}
	return e.part, nil
}

func newEvents() *events {
	e := &events{part: part{values: values{}}, settings: map[string]string{}, first: math.Inf(1), last: math.Inf(-1)}
	e.value = e.values.add
	return e
}

func (e *events) folder(dir, name string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var paths []string // by their time
	for _, entry := range entries {
		if entry.Type().IsRegular() && strings.HasPrefix(entry.Name(), eventPrefix) {
			paths = append(paths, filepath.Join(dir, entry.Name()))
		}
	}
	// A later file hides the steps of earlier ones from its start on.
	hidden, limit := make([]int64, len(paths)), int64(math.MaxInt64)
	for i, path := range slices.Backward(paths) {
		hidden[i] = limit
		err := eachEvent(path, func(event message) bool {
			if event.bytes(sessionField) != nil {
				limit = min(limit, int64(event.number(stepField)))
			}
			return event.bytes(summaryField) == nil
		})
		if err != nil {
			return err
		}
	}
	for i, path := range paths {
		if err := eachEvent(path, func(event message) bool { e.add(name, event, hidden[i]); return true }); err != nil {
			return err
		}
	}
	return nil
}

func (e *events) add(folder string, event message, hidden int64) {
	step := int64(event.number(stepField))
	if seconds := math.Float64frombits(event.number(secondsField)); seconds > 0 {
		e.first, e.last = min(e.first, seconds), max(e.last, seconds)
	}
	for v := range event.each(summaryField, valueField) {
		if folder == "" {
			e.session(v)
			continue
		}
		at := slices.IndexFunc(v, func(f field) bool { return f.number == numberField && f.kind == protowire.Fixed32Type })
		collection, name, isEntry := strings.Cut(string(v.bytes(tagField)), "/")
		if at < 0 || !isEntry || step >= hidden {
			continue
		}
		if collection, name = unescape(collection), unescape(name); folder != training {
			name = folder + "_" + name
		}
		e.at.Steps = max(e.at.Steps, step)
		e.value(collection+"."+name, step, float64(math.Float32frombits(uint32(v[at].bits))))
	}
}

var escapeForm = regexp.MustCompile(`%[0-9A-F]{2}`)

func unescape(text string) string {
	return escapeForm.ReplaceAllStringFunc(text, func(code string) string {
		b, _ := strconv.ParseUint(code[1:], 16, 8)
		return string([]byte{byte(b)})
	})
}

func (e *events) session(v message) {
	for content := range v.each(metadataField, pluginField, contentField) {
		for begin := range content.each(beginField) {
			e.status = ""
			for parameter := range begin.each(parameterField) {
				e.settings[string(parameter.bytes(nameField))] = parameter.text()
			}
		}
		for end := range content.each(endField) {
			if e.status = checkpoint.Failed; end.number(statusField) == endedWell {
				e.status = checkpoint.Ended
			}
		}
	}
}

func (m message) text() string {
	for _, f := range parse(m.bytes(parameterValue)) {
		switch f.number {
		case 2:
			return strconv.FormatFloat(math.Float64frombits(f.bits), 'g', -1, 64)
		case 3:
			return string(f.content)
		case 4:
			return strconv.FormatBool(f.bits != 0)
		}
	}
	return ""
}

const (
	secondsField, stepField, summaryField, sessionField = 1, 2, 5, 7 // of an Event
	valueField                                          = 1          // of a Summary
	tagField, numberField, metadataField                = 1, 2, 9    // of a Value
	pluginField, contentField                           = 1, 2       // of its metadata
	beginField, endField                                = 3, 4       // of HParamsPluginData
	parameterField, nameField, parameterValue           = 1, 1, 2    // of its begin
	statusField, endedWell                              = 1, 1       // of its end
)

type message []field

type field struct {
	number  protowire.Number
	kind    protowire.Type
	bits    uint64
	content []byte
}

// parse leaves out all from a malformed field on: the record's checksum was right.
func parse(b []byte) (m message) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return m
		}
		f, b2 := field{number: number, kind: kind}, b[n:]
		switch kind {
		case protowire.VarintType:
			f.bits, n = protowire.ConsumeVarint(b2)
		case protowire.Fixed64Type:
			f.bits, n = protowire.ConsumeFixed64(b2)
		case protowire.Fixed32Type:
			var bits uint32
			bits, n = protowire.ConsumeFixed32(b2)
			f.bits = uint64(bits)
		case protowire.BytesType:
			f.content, n = protowire.ConsumeBytes(b2)
		default:
			return m
		}
		if n < 0 {
			return m
		}
		m, b = append(m, f), b2[n:]
	}
	return m
}

func (m message) bytes(number protowire.Number) []byte {
	for _, f := range m {
		if f.number == number && f.kind == protowire.BytesType {
			return f.content
		}
	}
	return nil
}

func (m message) number(number protowire.Number) uint64 {
	for _, f := range m {
		if f.number == number {
			return f.bits
		}
	}
	return 0
}

func (m message) each(path ...protowire.Number) func(yield func(message) bool) {
	return func(yield func(message) bool) {
		for _, f := range m {
			if f.number != path[0] || f.kind != protowire.BytesType {
				continue
			}
			inner := parse(f.content)
			if len(path) == 1 {
				if !yield(inner) {
					return
				}
				continue
			}
			for deep := range inner.each(path[1:]...) {
				if !yield(deep) {
					return
				}
			}
		}
	}
}

const longestEvent = 1 << 30

// eachEvent ends before an incomplete last record: it may be being written.
func eachEvent(path string, do func(message) (more bool)) error {
	for record, err := range files.StreamTFRecords(path, longestEvent) {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if !do(parse(record)) {
			return nil
		}
	}
	return nil
}
