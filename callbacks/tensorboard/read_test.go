package tensorboard_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/lazo-ml/lazo/data/files"
)

// point is one value of an event file.
type point struct {
	step    int64
	seconds float64
	tag     string
	plugin  string
	content []byte
	class   int64
	shape   []int
	numbers []float64
	texts   []string
}

// events is the content of an event file.
type events struct {
	version string
	purge   []int64 // the steps from which older files no longer count
	records int     // with a summary
	points  []point
}

// fields is a message taken apart: integers, floats and bytes by their field.
type fields map[protowire.Number][]any

func parse(t *testing.T, b []byte) fields {
	t.Helper()
	all := fields{}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		require.Positive(t, n)
		b = b[n:]
		var v any
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			var bits uint64
			bits, n = protowire.ConsumeFixed64(b)
			v = math.Float64frombits(bits)
		case protowire.Fixed32Type:
			var bits uint32
			bits, n = protowire.ConsumeFixed32(b)
			v = math.Float32frombits(bits)
		case protowire.BytesType:
			v, n = protowire.ConsumeBytes(b)
		default:
			t.Fatalf("field %d is of kind %d, which no message of an event has", number, kind)
		}
		require.Positive(t, n)
		all[number], b = append(all[number], v), b[n:]
	}
	return all
}

func (f fields) bytes(path ...protowire.Number) []byte {
	if all := f[path[0]]; len(all) > 0 {
		return all[0].([]byte)
	}
	return nil
}

func (f fields) integer(n protowire.Number) int64 {
	if all := f[n]; len(all) > 0 {
		return int64(all[0].(uint64))
	}
	return 0
}

func (f fields) float(n protowire.Number) float64 {
	if all := f[n]; len(all) > 0 {
		return all[0].(float64)
	}
	return 0
}

// read reads the event files of a folder in the order of their names, each for itself.
func read(t *testing.T, folder string) []events {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "events.out.tfevents.*"))
	require.NoError(t, err)
	var all []events
	for _, path := range paths {
		file, err := os.Open(path)
		require.NoError(t, err)
		var e events
		for record, err := range files.ReadTFRecords(file, 0) {
			require.NoError(t, err)
			e.add(t, record)
		}
		require.NoError(t, file.Close())
		all = append(all, e)
	}
	return all
}

// only is the one file of a folder.
func only(t *testing.T, folder string) events {
	t.Helper()
	all := read(t, folder)
	require.Len(t, all, 1, folder)
	return all[0]
}

func (e *events) add(t *testing.T, record []byte) {
	t.Helper()
	event := parse(t, record)
	step, seconds := event.integer(2), event.float(1)
	if v := event.bytes(3); v != nil {
		e.version = string(v)
	}
	if log := event.bytes(7); log != nil {
		require.EqualValues(t, 1, parse(t, log).integer(1), "START")
		e.purge = append(e.purge, step)
	}
	summary := event.bytes(5)
	if summary == nil {
		return
	}
	e.records++
	for _, b := range parse(t, summary)[1] {
		v := parse(t, b.([]byte))
		p := point{step: step, seconds: seconds, tag: string(v.bytes(1))}
		metadata := parse(t, v.bytes(9))
		plugin := parse(t, metadata.bytes(1))
		p.plugin, p.content, p.class = string(plugin.bytes(1)), plugin.bytes(2), metadata.integer(4)
		tensor := parse(t, v.bytes(8))
		for _, d := range parse(t, tensor.bytes(2))[2] {
			p.shape = append(p.shape, int(parse(t, d.([]byte)).integer(1)))
		}
		content := tensor.bytes(4)
		require.NotEqual(t, "scalars", p.plugin, "a scalar is no tensor: Scalars of an EventAccumulator would not give it")
		if simple := v[2]; len(simple) > 0 { // for TensorBoard, this is of the plugin "scalars"
			require.Nil(t, v[8])
			require.Nil(t, v[9])
			p.plugin, p.class, p.numbers = "scalars", 1, []float64{float64(simple[0].(float32))}
		}
		for b := content; len(b) > 0; b = b[8:] {
			p.numbers = append(p.numbers, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		}
		for _, s := range tensor[8] {
			p.texts = append(p.texts, string(s.([]byte)))
		}
		e.points = append(e.points, p)
	}
}

// tags are the tags in their order.
func (e events) tags() (tags []string) {
	for _, p := range e.points {
		tags = append(tags, p.tag)
	}
	return tags
}

// series is the steps and numbers of a scalar.
func (e events) series(tag string) (steps []int64, values []float64) {
	for _, p := range e.points {
		if p.tag == tag {
			steps, values = append(steps, p.step), append(values, p.numbers...)
		}
	}
	return steps, values
}

func newReader(b []byte) io.Reader { return bytes.NewReader(b) }

// wholeRecords counts the records of which nothing is missing.
func wholeRecords(b []byte) (n int) {
	for len(b) >= 12 {
		size := 16 + binary.LittleEndian.Uint64(b)
		if uint64(len(b)) < size {
			break
		}
		n, b = n+1, b[size:]
	}
	return n
}

// kept returns the points that TensorBoard's Python loader keeps of a folder's files, read in order: each start but the
// very first removes all steps from its own on. Of hyperparameters it keeps the first.
func kept(files []events) (left []point) {
	started, known := false, map[string]bool{}
	for _, e := range files {
		for _, from := range e.purge {
			left = slices.DeleteFunc(left, func(p point) bool { return started && p.step >= from && p.plugin != "hparams" })
			started = true
		}
		for _, p := range e.points {
			if p.plugin != "hparams" || !known[p.tag] {
				left = append(left, p)
			}
			known[p.tag] = true
		}
	}
	return left
}
